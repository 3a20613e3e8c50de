"""How the ranks of a launch are divided between the parallel modes."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from xcfg.errors import UnsupportedError
from xcfg.model.json import Json


@frozen(kw_only=True)
class Topology:
    """``world_size`` ranks in the order (data, context, tensor), the last one running fastest.

    ``tensor`` neighbours hold the parts of one layer; ``context`` such groups, again neighbours, share the columns of
    the same rows. Parameters are sharded over every rank but those of the own ``tensor`` group.
    """

    world_size: int
    context: int = 1
    tensor: int = 1

    @property
    def peers(self) -> int:
        """Ranks that compute the same rows together, neighbours in the order of ranks."""
        return self.context * self.tensor

    @property
    def data(self) -> int:
        """Groups of ranks that compute rows of their own."""
        return self.world_size // self.peers

    @property
    def shards(self) -> int:
        """Ranks between which FSDP divides the parameters of one tensor-parallel rank."""
        return self.world_size // self.tensor


def topology_of(world_size: int, settings: Mapping[str, Json]) -> Topology:
    """From ``context_parallel`` and ``tensor_parallel``. Raises UnsupportedError where they do not divide the ranks."""
    context, tensor = int(settings.get("context_parallel") or 1), int(settings.get("tensor_parallel") or 1)
    if fault := division_fault(world_size, context=context, tensor=tensor):
        name, reason = fault
        raise UnsupportedError(reason, where=name)
    return Topology(world_size=world_size, context=context, tensor=tensor)


def division_fault(world_size: int, *, context: int, tensor: int) -> tuple[str, str] | None:
    """The knob and the reason why the ranks cannot be divided so; None where they can."""
    if world_size % tensor:
        return _TENSOR, f"{tensor} does not divide the {world_size} ranks of training.world_size"
    if world_size % (context * tensor):
        times = f" times training.tensor_parallel_size {tensor}" if tensor > 1 else ""
        return _CONTEXT, f"{context}{times} does not divide the {world_size} ranks of training.world_size"
    return None


_TENSOR = "training.tensor_parallel_size"
_CONTEXT = "training.context_parallel_size"
