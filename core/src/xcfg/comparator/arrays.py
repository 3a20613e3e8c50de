"""Logprobs of both sides as arrays in memory: read in place, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from xcfg.comparator.blocks import Block, PairedRow, cuts
from xcfg.comparator.values import POSITIVE_ROUNDING

UNKNOWN_TOKEN = -1
"""The token id of a worst token where no token ids were given."""


@frozen(kw_only=True, eq=False)
class ArrayPairs:
    """Rows of flat arrays: row i of R holds ``lengths[i]`` response tokens; ``mask`` (N,) bool or None: all active.

    ``rollout`` and ``train`` (N,) float32 or float64 in nats, ``tokens`` (N,) int64 or None. ``names`` are R sequence
    ids, or None: the number of the row. ``rank`` is this process's rank.
    """

    rollout: np.ndarray
    train: np.ndarray
    lengths: np.ndarray
    mask: np.ndarray | None
    tokens: np.ndarray | None
    names: tuple[str, ...] | None
    rank: int

    def blocks(self) -> Iterator[Block]:
        """Blocks of the rows' active tokens; rows without any are left out."""
        ends = np.cumsum(self.lengths)
        for rows in cuts(self.lengths):
            chosen = self.lengths[rows]
            flat = slice(int(ends[rows.start] - chosen[0]), int(ends[rows.stop - 1]))
            starts = np.cumsum(chosen) - chosen
            position = np.arange(flat.stop - flat.start) - np.repeat(starts, chosen)
            numbers, counts = np.arange(rows.start, rows.stop), chosen
            rollout, train = self.rollout[flat], self.train[flat]
            if self.mask is not None:
                active = self.mask[flat]
                before = np.concatenate([[0], np.cumsum(active)])
                counts = before[starts + chosen] - before[starts]
                position, rollout, train = position[active], rollout[active], train[active]
            filled = np.flatnonzero(counts)
            if len(filled):
                counts = counts[filled]
                yield Block(
                    rows=numbers[filled],
                    starts=np.cumsum(counts) - counts,
                    lengths=counts,
                    position=position,
                    rollout=rollout,
                    train=train,
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
            rollout=self.rollout[at],
            train=self.train[at],
        )

    def name(self, number: int) -> str:
        """The sequence id of a row."""
        return str(number) if self.names is None else self.names[number]


@frozen(kw_only=True)
class Census:
    """What stands in the active places: how many there are, and how many hold a NaN or infinity, or are positive."""

    active: int
    not_finite: int
    positive: int
    first: str


def census(pairs: ArrayPairs) -> Census:
    """Count the active tokens and those whose logprob no comparison may contain; ``first`` names one of the latter."""
    active, not_finite, positive, first = 0, 0, 0, ""
    for block in pairs.blocks():
        active += len(block.rollout)
        for side, values in (("rollout", block.rollout), ("training", block.train)):
            if values.max() <= POSITIVE_ROUNDING and values.min() > -np.inf:
                continue  # a NaN makes both extremes NaN
            finite = np.isfinite(values)
            with np.errstate(invalid="ignore"):
                above = finite & (values > POSITIVE_ROUNDING)
            not_finite += int(np.count_nonzero(~finite))
            positive += int(np.count_nonzero(above))
            at = int(np.argmax(~finite | above))
            row = pairs.name(int(block.rows[np.searchsorted(block.starts, at, side="right") - 1]))
            place = f"in sequence {row!r} at position {int(block.position[at])} on rank {pairs.rank}"
            first = first or f"{side} {float(values[at])} {place}"
    return Census(active=active, not_finite=not_finite, positive=positive, first=first)
