"""Logprobs of both sides as arrays in memory: read in place, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import field, frozen

from xcfg.comparator.blocks import Block, PairedRow, cuts
from xcfg.comparator.values import not_finite, positive, sound
from xcfg.model.sample import ragged

UNKNOWN_TOKEN = -1
"""The token id of a worst token where no token ids were given."""


@frozen(kw_only=True, eq=False)
class ArrayPairs:
    """Rows of flat arrays: row i of R holds ``lengths[i]`` response tokens; ``mask`` (N,) bool or None: all active.

    ``rollout`` and ``train`` (N,) float16, float32 or float64 in nats, ``tokens`` (N,) int64 or None. ``names`` are R
    distinct sequence ids, or None: the number of the row. ``rank`` is this process's rank. ``same_memory`` says that
    both sides were handed over as the same bytes. ``order`` (R,) numbers the rows by name, so that it does not matter
    how they were ordered.
    """

    rollout: np.ndarray
    train: np.ndarray
    lengths: np.ndarray
    mask: np.ndarray | None
    tokens: np.ndarray | None
    names: tuple[str, ...] | None
    rank: int
    same_memory: bool = False
    order: np.ndarray = field(init=False)

    @order.default
    def _by_name(self) -> np.ndarray:
        numbers = range(len(self.lengths))
        return np.array(numbers if self.names is None else sorted(numbers, key=self.names.__getitem__), dtype=np.int64)

    def blocks(self) -> Iterator[Block]:
        """Blocks of the rows' active tokens; rows without any are left out."""
        before = np.cumsum(self.lengths) - self.lengths
        for cut in cuts(self.lengths[self.order]):
            numbers = self.order[cut]
            counts = self.lengths[numbers]
            starts = np.cumsum(counts) - counts
            position = np.arange(int(counts.sum())) - np.repeat(starts, counts)
            rollout, train = (ragged(side, before[numbers], counts) for side in (self.rollout, self.train))
            if self.mask is not None:
                active = ragged(self.mask, before[numbers], counts)
                total = np.concatenate([[0], np.cumsum(active)])
                counts = total[starts + counts] - total[starts]
                position, rollout, train = position[active], rollout[active], train[active]
            filled = np.flatnonzero(counts)
            if len(filled):
                counts = counts[filled]
                yield Block(
                    rows=numbers[filled],
                    starts=np.cumsum(counts) - counts,
                    lengths=counts,
                    position=position,
                    rollout=_widened(rollout),
                    train=_widened(train),
                )

    def row(self, number: int) -> PairedRow:
        """A row by its number."""
        start = int(self.lengths[:number].sum())
        flat = slice(start, start + int(self.lengths[number]))
        position = np.arange(flat.stop - start)
        if self.mask is not None:
            position = np.flatnonzero(self.mask[flat])
        at = start + position
        return PairedRow(
            sequence=self.name(number),
            rollout_rank=self.rank,
            train_rank=self.rank,
            position=position,
            token=np.full(len(at), UNKNOWN_TOKEN) if self.tokens is None else self.tokens[at],
            rollout=_widened(self.rollout[at]),
            train=_widened(self.train[at]),
        )

    def name(self, number: int) -> str:
        """The sequence id of a row."""
        return str(number) if self.names is None else self.names[number]


def _widened(logp: np.ndarray) -> np.ndarray:
    """float16 as float32, which changes no value; wider ones as they are."""
    return logp.astype(np.float32) if logp.dtype == np.float16 else logp


@frozen(kw_only=True)
class Census:
    """What stands in the active places: how many there are, and how many hold a NaN or infinity, or are positive.

    ``first`` names the first positive one, or the first that is not finite where none is positive.
    """

    active: int
    not_finite: int
    positive: int
    first: str


def census(pairs: ArrayPairs) -> Census:
    """Count the active tokens and those whose logprob no comparison may contain."""
    active = 0
    counts, first = {"not_finite": 0, "positive": 0}, {"not_finite": "", "positive": ""}
    for block in pairs.blocks():
        active += len(block.rollout)
        sides = {"rollout": block.rollout, "training": block.train}
        if all(sound(side) for side in sides.values()):
            continue
        for kind, wrong in (("not_finite", not_finite), ("positive", positive)):
            marked = {side: wrong(values) for side, values in sides.items()}
            counts[kind] += sum(int(np.count_nonzero(marks)) for marks in marked.values())
            found = [(int(np.argmax(marks)), side) for side, marks in marked.items() if marks.any()]
            if found and not first[kind]:
                at, side = min(found)
                row = pairs.name(int(block.rows[np.searchsorted(block.starts, at, side="right") - 1]))
                place = f"in sequence {row!r} at position {int(block.position[at])} on rank {pairs.rank}"
                first[kind] = f"{side} {float(sides[side][at])} {place}"
    return Census(active=active, **counts, first=first["positive"] or first["not_finite"])
