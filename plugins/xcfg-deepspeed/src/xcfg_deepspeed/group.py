"""The process group of the ranks, and DeepSpeed's communication on top of it."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from xcfg.errors import EnvironmentFault
from xcfg_deepspeed.operator import load_operator, operator_hidden
from xcfg_deepspeed.shapes import SHM, Shape
from xcfg_deepspeed.shared_memory import forget_segments

if TYPE_CHECKING:
    import torch

BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


def join(rank: int, shape: Shape, device: torch.device, *, sums: bool) -> None:
    """Join the ranks that torch's elastic launcher started; a single rank needs no launcher.

    ``sums`` says whether DeepSpeed's own operator may carry sums; only then is it compiled and opened.

    Raises EnvironmentFault where several ranks were asked for and no launcher started this process, where a library of
    collectives cannot carry tensors of the device, or DeepSpeed would compute on another kind of device.
    """
    import torch.distributed as dist

    backend = _backend(shape.collective, device)
    bound = device if backend == "nccl" else None
    if dist.is_torchelastic_launched():
        dist.init_process_group(backend, device_id=bound)
    elif shape.world_size == 1:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, device_id=bound)
    else:
        raise EnvironmentFault(f"{shape.world_size} ranks need torch's elastic launcher", where="training.world_size")
    if (dist.get_rank(), dist.get_world_size()) != (rank, shape.world_size):
        raise EnvironmentFault(
            f"rank {rank} of {shape.world_size} was asked for; the launcher made rank {dist.get_rank()} of "
            f"{dist.get_world_size()}",
            where="training.world_size",
        )
    _check_device(device)
    _join_deepspeed(backend, sums=sums)
    dist.barrier()
    forget_segments(rank)


def communication() -> Any:
    """DeepSpeed's communication object: a wrapper around torch's process group, or a library of its own."""
    from deepspeed.comm import comm

    return comm.cdb


def leave(*, healthy: bool) -> None:
    """Destroy the group, after a barrier where every rank is known to reach it: a rank that failed never would."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return
    if healthy:
        dist.barrier()
    if "deepspeed" in sys.modules:
        _leave_deepspeed()
    dist.destroy_process_group()


def _backend(collective: str | None, device: torch.device) -> str:
    if collective == "nccl" and device.type != "cuda":
        raise EnvironmentFault("nccl carries tensors of CUDA devices only", where="execution.collective")
    return BACKENDS[device.type] if collective in (None, SHM) else str(collective)


def _check_device(device: torch.device) -> None:
    from deepspeed.accelerator import get_accelerator

    kind = get_accelerator().device_name()
    if kind.partition(":")[0] != device.type:
        raise EnvironmentFault(
            f"DeepSpeed computes on {kind} and the ranks were to compute on {device.type}",
            where="torch.device",
            hint=f"set DS_ACCELERATOR={device.type} before DeepSpeed is imported",
        )


def _join_deepspeed(backend: str, *, sums: bool) -> None:
    import deepspeed

    if sums:
        load_operator()
    with nullcontext() if sums else operator_hidden():
        deepspeed.init_distributed(dist_backend=backend, auto_mpi_discovery=False)


def _leave_deepspeed() -> None:
    """DeepSpeed keeps its groups in module globals, which a later engine of this process would take for its own."""
    from deepspeed.comm import comm
    from deepspeed.inference.engine import InferenceEngine
    from deepspeed.utils import groups

    comm.cdb = None
    InferenceEngine.inference_mp_group = None
    groups._release_process_group_references()
