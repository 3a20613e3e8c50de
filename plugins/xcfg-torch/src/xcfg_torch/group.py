"""The process group of the ranks of an elastic launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcfg.errors import EnvironmentFault

if TYPE_CHECKING:
    import torch

BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


def join(
    rank: int, world_size: int, device: torch.device, collective: str | None = None, *, where: str = "ranks"
) -> None:
    """Join the ranks that torch's elastic launcher started; a single rank needs no launcher.

    ``collective`` is the library between them; None is the usual one of the device. ``where`` names what the ranks are
    asked for by. Raises EnvironmentFault where
    several ranks were asked for and no launcher started this process.
    """
    import torch.distributed as dist

    backend = collective or BACKENDS[device.type]
    bound = device if backend == "nccl" else None
    if dist.is_torchelastic_launched():
        dist.init_process_group(backend, device_id=bound)
    elif world_size == 1:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, device_id=bound)
    else:
        raise EnvironmentFault(f"{world_size} ranks need torch's elastic launcher", where=where)
    if (dist.get_rank(), dist.get_world_size()) != (rank, world_size):
        raise EnvironmentFault(
            f"rank {rank} of {world_size} was asked for; the launcher made rank {dist.get_rank()} of "
            f"{dist.get_world_size()}",
            where=where,
        )


def leave(*, healthy: bool) -> None:
    """Destroy the group, after a barrier where every rank is known to reach it: a rank that failed never would."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return
    if healthy:
        dist.barrier()
    dist.destroy_process_group()
