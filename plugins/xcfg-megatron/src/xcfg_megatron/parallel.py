"""Process group and parallel state: tensor, pipeline and data parallel ranks, in Megatron's own bookkeeping."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg.errors import EnvironmentFault, UnsupportedError
from xcfg_megatron.importing import megatron
from xcfg_torch import group

if TYPE_CHECKING:
    import torch

ORDER = "tp-cp-ep-pp-dp"
"""Ranks that compute the same rows are neighbours: data parallel ranks come last."""


@frozen(kw_only=True)
class Degrees:
    """Ranks of each parallel mode."""

    tensor: int = 1
    pipeline: int = 1

    @property
    def peers(self) -> int:
        """Ranks that compute the same rows together."""
        return self.tensor * self.pipeline


def join(rank: int, world_size: int, device: torch.device, degrees: Degrees, collective: str | None = None) -> None:
    """Join the ranks that torch's elastic launcher started and split them; a single rank needs no launcher.

    Raises EnvironmentFault where several ranks were asked for and no launcher started this process, and where the
    collective library cannot carry the device's tensors; UnsupportedError where the ranks cannot be split so.
    """
    if collective == "nccl" and device.type != "cuda":
        raise EnvironmentFault("nccl carries tensors of CUDA devices only", where="execution.collective")
    if world_size % degrees.peers:
        raise UnsupportedError(ranks_fault(world_size, degrees), where="training.world_size")
    group.join(rank, world_size, device, collective)
    megatron("parallel_state").initialize_model_parallel(degrees.tensor, degrees.pipeline, order=ORDER)
    megatron("tensor_parallel.random").initialize_rng_tracker(inference_rng_tracker=True)


def ranks_fault(world_size: int, degrees: Degrees) -> str:
    """A sentence for ranks that are no multiple of those that compute a row together."""
    return (
        f"{world_size} ranks are no multiple of {degrees.tensor} tensor-parallel times {degrees.pipeline} "
        "pipeline-parallel ones"
    )


def leave(*, healthy: bool) -> None:
    """Forget the parallel state and destroy the groups: :func:`xcfg_torch.group.leave`. Idempotent."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        megatron("parallel_state").destroy_model_parallel()
    group.leave(healthy=healthy)


def local_rank(rank: int) -> int:
    """The rank on its machine."""
    return int(os.environ.get("LOCAL_RANK", rank))


def groups() -> dict[str, Any]:
    """The process group of this rank in each mode, as Megatron has them: ``tp``, ``pp``, ``cp``, ``dp``."""
    state = megatron("parallel_state")
    return {
        "tp": state.get_tensor_model_parallel_group(),
        "pp": state.get_pipeline_model_parallel_group(),
        "cp": state.get_context_parallel_group(),
        "dp": state.get_data_parallel_group(),
    }
