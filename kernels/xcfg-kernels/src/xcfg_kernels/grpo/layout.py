"""Where the tokens of a batch lie: sequences on data parallel ranks, positions on context parallel ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import field, frozen

from xcfg.errors import Fault, InvalidInput
from xcfg.model.json import Json

Rows: TypeAlias = tuple[int, ...]
"""Numbers of sequences, in the order of the rows that hold them."""


def _microbatches(values: Sequence[Sequence[Sequence[int]]]) -> tuple[tuple[Rows, ...], ...]:
    return tuple(tuple(tuple(map(int, rows)) for rows in rank) for rank in values)


def _positions(values: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, rank)) for rank in values)


@frozen(kw_only=True)
class LossLayout:
    """The whole layout of one batch, and which of its ranks this is.

    ``microbatches[d][m]`` are the sequences of microbatch ``m`` of data parallel rank ``d``, ``positions[c]`` the
    columns of every sequence that context parallel rank ``c`` has, both in the order of the rows and columns of the
    tensors. Sequences are numbered from 0 over the whole batch, positions from 0 over the padded width. Tensor
    parallel ranks hold the same logprobs and are no part of it.

    Raises InvalidInput where a sequence or a position has no rank or more than one.
    """

    microbatches: tuple[tuple[Rows, ...], ...] = field(converter=_microbatches)
    positions: tuple[tuple[int, ...], ...] = field(converter=_positions)
    dp_rank: int = 0
    cp_rank: int = 0

    def __attrs_post_init__(self) -> None:
        """Raises InvalidInput naming every fault."""
        if faults := tuple(Fault(message=text, where="layout") for text in _faults(self)):
            raise InvalidInput(faults=faults)

    @property
    def own(self) -> tuple[Rows, ...]:
        """The microbatches of this rank."""
        return self.microbatches[self.dp_rank]

    @property
    def dp_rows(self) -> tuple[Rows, ...]:
        """The sequences of every data parallel rank, its microbatches behind each other."""
        return tuple(tuple(row for rows in rank for row in rows) for rank in self.microbatches)

    @property
    def sequences(self) -> int:
        """Sequences of the batch."""
        return sum(map(len, self.dp_rows))

    @property
    def width(self) -> int:
        """Positions of a sequence, padding included."""
        return sum(map(len, self.positions))

    def record(self) -> Mapping[str, Json]:
        """What every rank must agree on."""
        microbatches = [[list(rows) for rows in rank] for rank in self.microbatches]
        return {"microbatches": microbatches, "positions": [list(rank) for rank in self.positions]}


def even_layout(
    *, sequences: int, width: int, microbatch: int, dp: tuple[int, int] = (0, 1), cp: tuple[int, int] = (0, 1)
) -> LossLayout:
    """Neighbouring sequences in microbatches of equal size, neighbouring positions.

    ``dp`` and ``cp`` are (rank, world). Raises InvalidInput where the batch does not divide evenly: then give a
    LossLayout.
    """
    for name, count, parts in (("sequences", sequences, dp[1] * microbatch), ("positions", width, cp[1])):
        if parts < 1 or count % parts:
            raise InvalidInput(f"{count} {name} do not divide evenly into {parts}", where="layout")
    share, columns = sequences // dp[1], width // cp[1]
    starts = [range(rank * share, (rank + 1) * share, microbatch) for rank in range(dp[1])]
    return LossLayout(
        microbatches=[[range(start, start + microbatch) for start in rank] for rank in starts],
        positions=[range(rank * columns, (rank + 1) * columns) for rank in range(cp[1])],
        dp_rank=dp[0],
        cp_rank=cp[0],
    )


def _faults(layout: LossLayout) -> Iterator[str]:
    yield from _held("sequence", [row for rank in layout.dp_rows for row in rank])
    yield from _held("position", [place for rank in layout.positions for place in rank])
    for name, rank, world in (
        ("data", layout.dp_rank, len(layout.microbatches)),
        ("context", layout.cp_rank, len(layout.positions)),
    ):
        if not 0 <= rank < world:
            yield f"{name} parallel rank {rank} is not one of {world}"
    for number, rank_rows in enumerate(layout.microbatches):
        if not rank_rows or not all(rank_rows):
            yield f"data parallel rank {number} has no sequence, or a microbatch without one"


def _held(name: str, numbers: list[int]) -> Iterator[str]:
    if not numbers:
        yield f"there is no {name}"
    if twice := sorted(number for number, times in Counter(numbers).items() if times > 1):
        yield f"{name} {twice[0]} is held more than once"
    if missing := sorted(set(range(len(numbers))) ^ set(numbers)):
        yield f"{name}s are numbered from 0 without a gap; {missing[0]} does not fit"
