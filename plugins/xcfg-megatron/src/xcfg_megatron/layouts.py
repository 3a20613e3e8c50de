"""How tensors of a Hugging Face checkpoint lie in the parameters of Megatron's tensor-parallel ranks, and back.

Each layout has two directions that are written apart: ``local`` gives a rank its part, ``sources`` reassembles the
checkpoint's tensors from the parts of all ranks. The second proves the first, so it must not reuse it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    import torch


class Layout(Protocol):
    """One parameter of every rank of a tensor-parallel group, against one or more tensors of the checkpoint."""

    def local(self, sources: Sequence[torch.Tensor], rank: int, ranks: int) -> torch.Tensor:
        """The part of ``rank``."""

    def sources(self, shards: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The tensors of the checkpoint, from the parts in the order of the ranks."""


@frozen
class Whole:
    """Every rank has the tensor, as the norms."""

    def local(self, sources: Sequence[torch.Tensor], rank: int, ranks: int) -> torch.Tensor:
        """All of it."""
        return sources[0]

    def sources(self, shards: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The first rank's. Raises ValueError where the ranks differ."""
        import torch

        if not all(torch.equal(shards[0], shard) for shard in shards):
            raise ValueError("the ranks of a tensor-parallel group differ")
        return (shards[0],)


@frozen
class Columns:
    """Split along its columns: the input of a row-parallel layer."""

    def local(self, sources: Sequence[torch.Tensor], rank: int, ranks: int) -> torch.Tensor:
        """A run of columns."""
        return sources[0].chunk(ranks, dim=1)[rank]

    def sources(self, shards: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The runs side by side."""
        import torch

        return (torch.hstack(list(shards)),)


@frozen
class Vocabulary:
    """Rows of embedding or head: ``real`` ones, and zeros up to ``padded``, in equal runs."""

    real: int
    padded: int

    def local(self, sources: Sequence[torch.Tensor], rank: int, ranks: int) -> torch.Tensor:
        """A run of rows."""
        import torch

        missing = self.padded - self.real
        return torch.nn.functional.pad(sources[0], (0, 0, 0, missing)).chunk(ranks)[rank]

    def sources(self, shards: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The real rows. Raises ValueError where a row of padding is not zero."""
        import torch

        rows = torch.vstack(list(shards))
        if len(rows) != self.padded or bool(rows[self.real :].any()):
            raise ValueError(f"rows {self.real} to {self.padded} are not {self.padded - self.real} rows of zeros")
        return (rows[: self.real],)


@frozen
class GateUp:
    """The two inputs of a gated MLP: each rank has its rows of the gate and, below them, its rows of the other."""

    def local(self, sources: Sequence[torch.Tensor], rank: int, ranks: int) -> torch.Tensor:
        """Gate over up."""
        import torch

        return torch.cat([source.chunk(ranks)[rank] for source in sources])

    def sources(self, shards: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """(gate, up)."""
        import torch

        half = shards[0].shape[0] // 2
        return torch.vstack([shard[:half] for shard in shards]), torch.vstack([shard[half:] for shard in shards])


@frozen
class QueryKeyValue:
    """One run of rows a key-value head: its query heads, its key, its value; the runs in equal parts over the ranks.

    Weights (rows, hidden) and biases (rows,). Where there are more ranks than key-value heads a run lies on several.
    """

    heads: int
    groups: int
    head_dim: int

    def local(self, sources: Sequence[torch.Tensor], rank: int, ranks: int) -> torch.Tensor:
        """Runs of this rank."""
        import torch

        by_group = [source.reshape(self.groups, -1, *source.shape[1:]) for source in sources]
        return torch.cat(by_group, dim=1).flatten(0, 1).chunk(ranks)[rank]

    def sources(self, shards: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """(query, key, value), each row looked up where Megatron's attention takes it from."""
        import torch

        rows, per = torch.cat(list(shards)), self.heads // self.groups
        blocks = list(rows.split(self.head_dim))
        query = [blocks[(head // per) * (per + 2) + head % per] for head in range(self.heads)]
        key = [blocks[group * (per + 2) + per] for group in range(self.groups)]
        value = [blocks[group * (per + 2) + per + 1] for group in range(self.groups)]
        return torch.cat(query), torch.cat(key), torch.cat(value)
