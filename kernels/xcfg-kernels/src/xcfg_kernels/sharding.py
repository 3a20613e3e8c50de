"""How the vocabulary columns of the logits lie on the ranks of a tensor-parallel group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from attrs import evolve, field, frozen

from xcfg.errors import Fault, InvalidInput
from xcfg.model.json import Json


def _bounds(values: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(start), int(end)) for start, end in values)


@frozen(kw_only=True)
class ShardingSpec:
    """Vocabulary columns ``[start, end)`` of every rank, in rank order, and which of the ranks this is.

    ``padded_vocab_size`` counts the columns there are, ``vocab_size`` those that have a token: the columns from
    ``vocab_size`` on are padding, carry no probability and get no gradient. ``head`` says how the output projection is
    split: a row-parallel head gives partial sums of every column, which are not logits yet, and is refused.
    ``context_parallel_size`` is recorded only: context parallelism splits rows, which are never merged here, so no
    group that spans it may be given.

    Raises InvalidInput naming every fault; nothing is assumed in the place of a missing or contradicting figure.
    """

    bounds: tuple[tuple[int, int], ...] = field(converter=_bounds)
    vocab_size: int
    padded_vocab_size: int
    tp_rank: int
    tp_world: int
    head: Literal["column-parallel", "row-parallel"] = "column-parallel"
    context_parallel_size: int = 1

    def __attrs_post_init__(self) -> None:
        """Raises InvalidInput."""
        if faults := tuple(Fault(message=text, where="sharding") for text in _faults(self)):
            raise InvalidInput(faults=faults)

    @property
    def start(self) -> int:
        """The first column of this rank."""
        return self.bounds[self.tp_rank][0]

    @property
    def columns(self) -> int:
        """The columns of this rank, padding included."""
        start, end = self.bounds[self.tp_rank]
        return end - start

    @property
    def real_columns(self) -> int:
        """The columns of this rank that have a token."""
        return min(max(self.vocab_size - self.start, 0), self.columns)

    def at(self, rank: int) -> ShardingSpec:
        """The same sharding seen from another rank."""
        return evolve(self, tp_rank=rank)

    def record(self) -> Mapping[str, Json]:
        """What every rank of the group must agree on."""
        return {
            "bounds": [list(bound) for bound in self.bounds],
            "vocab_size": self.vocab_size,
            "padded_vocab_size": self.padded_vocab_size,
            "tp_world": self.tp_world,
        }


def unsharded(vocab_size: int) -> ShardingSpec:
    """The whole vocabulary on one rank, without padding."""
    return even_shards(vocab_size=vocab_size, padded_vocab_size=vocab_size, tp_world=1, tp_rank=0)


def even_shards(*, vocab_size: int, padded_vocab_size: int, tp_world: int, tp_rank: int) -> ShardingSpec:
    """Shards of equal width, as vLLM and Megatron make them. Raises InvalidInput where the width would not be whole."""
    width, rest = divmod(padded_vocab_size, max(tp_world, 1))
    if rest:
        message = f"{padded_vocab_size} columns do not split into {tp_world} equal shards"
        raise InvalidInput(message, where="sharding", hint="pad the vocabulary, or give the bounds of uneven shards")
    bounds = [(rank * width, (rank + 1) * width) for rank in range(tp_world)]
    return ShardingSpec(
        bounds=bounds, vocab_size=vocab_size, padded_vocab_size=padded_vocab_size, tp_rank=tp_rank, tp_world=tp_world
    )


def _faults(spec: ShardingSpec) -> Iterator[str]:
    if spec.head != "column-parallel":
        yield f"a {spec.head} head gives partial sums, not logits: reduce them over the ranks first"
    if spec.vocab_size < 1:
        yield f"a vocabulary of {spec.vocab_size} has no token to score"
    if spec.padded_vocab_size < spec.vocab_size:
        yield f"{spec.padded_vocab_size} padded columns are fewer than the {spec.vocab_size} of the vocabulary"
    if spec.context_parallel_size < 1:
        yield f"context_parallel_size must be at least 1, not {spec.context_parallel_size}"
    if len(spec.bounds) != spec.tp_world:
        yield f"{spec.tp_world} ranks need as many bounds, {len(spec.bounds)} are given"
    if not 0 <= spec.tp_rank < spec.tp_world:
        yield f"rank {spec.tp_rank} is not one of {spec.tp_world}"
    yield from _bound_faults(spec.bounds, spec.padded_vocab_size)


def _bound_faults(bounds: tuple[tuple[int, int], ...], padded: int) -> Iterator[str]:
    for rank, (start, end) in enumerate(bounds):
        if end <= start:
            yield f"rank {rank} has no column in [{start}, {end})"
    for rank, ((_, end), (start, _)) in enumerate(pairwise(bounds), 1):
        if start < end:
            yield f"rank {rank} starts at column {start}, inside rank {rank - 1}, which ends at {end}: shards overlap"
        if start > end:
            yield f"columns {end} to {start} belong to no rank: rank {rank} starts at {start}"
    if bounds and bounds[0][0] != 0:
        yield f"rank 0 starts at column {bounds[0][0]}, not 0"
    if bounds and bounds[-1][1] != padded:
        yield f"the last rank ends at column {bounds[-1][1]}, the padded vocabulary at {padded}: declare the padding"
