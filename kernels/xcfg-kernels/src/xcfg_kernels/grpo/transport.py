"""How losses travel between ranks: every rank gets those of all, in rank order. Nothing is added on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
import torch.distributed as dist

from xcfg.errors import InvalidInput
from xcfg.model.ids import canonical
from xcfg.model.json import Json

Gather: TypeAlias = Callable[[torch.Tensor, Sequence[int]], list[torch.Tensor]]
"""From this rank's tensor and the first dimension of every rank's to the tensors of all ranks, in rank order."""


def transport(
    group: dist.ProcessGroup | None, rank: int, world: int, agreed: Json, name: str, device: torch.device
) -> Gather:
    """The all-gather of one axis, after every rank showed that it has the same ``agreed``.

    ``name`` is the axis in messages. Raises InvalidInput where the group is missing or is not the one declared, and
    where a rank declares something else.
    """
    if group is None:
        if world > 1:
            raise InvalidInput(f"{world} {name} parallel ranks need their process group", where=f"{name} group")
        return lambda own, sizes: [own]
    found = dist.get_rank(group), dist.get_world_size(group)
    if found != (rank, world):
        message = f"this is rank {found[0]} of {found[1]} in the group, rank {rank} of {world} in the layout"
        raise InvalidInput(message, where=f"{name} group")
    _check_agreement(group, world, agreed, name, device)

    def gather(own: torch.Tensor, sizes: Sequence[int]) -> list[torch.Tensor]:
        padded = own.new_zeros((max(sizes), *own.shape[1:]))
        padded[: len(own)] = own
        gathered = own.new_empty((world, *padded.shape))
        dist.all_gather(list(gathered.unbind()), padded, group=group)
        return [part[:size] for part, size in zip(gathered.unbind(), sizes, strict=True)]

    return gather


def _check_agreement(group: dist.ProcessGroup, world: int, agreed: Json, name: str, device: torch.device) -> None:
    digest = hashlib.sha256(canonical(agreed)).digest()
    own = torch.tensor(list(digest), dtype=torch.uint8, device=device)
    said = own.new_empty((world, len(digest)))
    dist.all_gather(list(said.unbind()), own, group=group)
    if wrong := (said != own).any(dim=1).nonzero().flatten().tolist():
        message = f"{name} parallel rank {wrong[0]} declares another layout, policy or reduction than this one"
        raise InvalidInput(message, where=f"{name} group", hint="every rank must give the same")
