"""How partial results travel: every rank gets those of all, in rank order. Nothing is added on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import torch
import torch.distributed as dist

from xcfg.errors import InvalidInput
from xcfg_kernels.sharding import ShardingSpec

Exchange: TypeAlias = Callable[[Sequence[torch.Tensor]], torch.Tensor]
"""From the tensors of the ranks this process plays, all of one shape, to those of every rank: (world, ...)."""


def in_process(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """All ranks are played by this process."""
    return torch.stack(list(parts))


def over_group(group: dist.ProcessGroup, sharding: ShardingSpec) -> Exchange:
    """An all-gather over a process group. Raises InvalidInput where the group is not the one of the sharding.

    Ranks must bring equally many rows; the backend of the group refuses anything else.
    """
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    if (world, rank) != (sharding.tp_world, sharding.tp_rank):
        declared = f"rank {sharding.tp_rank} of {sharding.tp_world}"
        message = f"this is rank {rank} of {world} in the group, {declared} in the sharding"
        hint = "give the tensor-parallel group alone: context and data parallel ranks hold other rows"
        raise InvalidInput(message, where="group", hint=hint)

    def gather(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        (own,) = parts
        gathered = own.new_empty((world, *own.shape))
        dist.all_gather(list(gathered.unbind()), own.contiguous(), group=group)
        return gathered

    return gather


@lru_cache(maxsize=64)
def constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """The values on a device, made once. Not to be written to."""
    with torch.inference_mode(False):
        return torch.tensor(values, dtype=dtype, device=device)


def with_header(parts: Sequence[torch.Tensor], agreed: tuple[float, ...]) -> torch.Tensor:
    """``parts`` (C, N) float32 under each other beside columns that hold ``agreed``: (sum C, N + 3)."""
    said = constant(agreed, torch.float32, parts[0].device)
    values = parts[0].new_empty((sum(map(len, parts)), parts[0].shape[1] + len(agreed)))
    values[:, : len(agreed)] = said
    torch.cat(list(parts), out=values[:, len(agreed) :])
    return values


def without_header(gathered: torch.Tensor, agreed: tuple[float, ...]) -> torch.Tensor:
    """The values of all ranks (world, C, N). Raises InvalidInput naming a rank that declares something else."""
    said = gathered[:, 0, : len(agreed)]
    if torch.equal(said, constant(agreed, torch.float32, said.device).expand_as(said)):
        return gathered[..., len(agreed) :]
    wrong = (said != constant(agreed, torch.float32, said.device)).any(dim=1).nonzero().flatten().tolist()
    message = f"rank {wrong[0]} declares another sharding, reduction, implementation or dtype than this one"
    hint = "every rank must give the same bounds, sizes and reduction"
    raise InvalidInput(message, where="sharding", hint=hint)
