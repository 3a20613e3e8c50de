"""Paired active tokens in blocks of whole rows: what every metric and detector reads, in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
from attrs import frozen

from xcfg.model.outcome import PairedTokens

BLOCK_TOKENS = 1 << 15
"""Tokens from which a block is closed: its float64 temporaries stay in a core's own cache."""


@frozen(kw_only=True, eq=False, slots=False)
class Block:
    """Some rows of a comparison, each one sequence's active tokens; never empty, and no row is.

    ``rows`` (R,) int64 numbers the rows among all rows; ``starts`` and ``lengths`` (R,) int64 are their places in the
    flat arrays. ``position`` (n,) int64 counts from 0 in the response, ``rollout`` and
    ``train`` (n,) are float32 or float64 natural-log probabilities.
    """

    rows: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    position: np.ndarray
    rollout: np.ndarray
    train: np.ndarray

    @cached_property
    def d(self) -> np.ndarray:
        """(n,) float64 ``train - rollout`` (nats); both sides are widened before the subtraction."""
        difference: np.ndarray = self.train.astype(np.float64)
        difference -= self.rollout
        return difference

    @cached_property
    def absolute(self) -> np.ndarray:
        """(n,) float64 abs(d)."""
        magnitude: np.ndarray = np.abs(self.d)
        return magnitude


@frozen(kw_only=True)
class Place:
    """One token: the number of its row, its position in the response, both logprobs."""

    row: int
    position: int
    rollout: float
    train: float


@frozen(kw_only=True, eq=False)
class PairedRow:
    """One row by name: a sequence's active tokens as one pair of ranks scored them; the arrays are (n,)."""

    sequence: str
    rollout_rank: int
    train_rank: int
    position: np.ndarray
    token: np.ndarray
    rollout: np.ndarray
    train: np.ndarray


class Pairs(Protocol):
    """The judged rows of a comparison, in order of (sequence, ranks). Every call reads them from the start."""

    def blocks(self) -> Iterator[Block]:
        """Blocks of about ``BLOCK_TOKENS`` tokens; where they are cut depends on the rows' lengths alone."""


class NamedPairs(Pairs, Protocol):
    """Pairs whose rows can be looked up."""

    def row(self, number: int) -> PairedRow:
        """A row by its number."""


def cuts(lengths: np.ndarray) -> Iterator[slice]:
    """Slices of rows that hold about ``BLOCK_TOKENS`` tokens each; a longer row is a slice of its own."""
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        before = int(ends[first - 1]) if first else 0
        after = max(int(np.searchsorted(ends, before + BLOCK_TOKENS, side="right")), first + 1)
        yield slice(first, after)
        first = after


@frozen
class TokenPairs:
    """The pairs of a comparison in memory."""

    tokens: PairedTokens

    def blocks(self) -> Iterator[Block]:
        """Blocks of whole rows, as views."""
        lengths, tokens = self.tokens.row_length, self.tokens
        ends = np.cumsum(lengths)
        for rows in cuts(lengths):
            chosen = lengths[rows]
            flat = slice(int(ends[rows.start] - lengths[rows.start]), int(ends[rows.stop - 1]))
            yield Block(
                rows=np.arange(rows.start, rows.stop),
                starts=np.cumsum(chosen) - chosen,
                lengths=chosen,
                position=tokens.position[flat],
                rollout=tokens.rollout_logp[flat],
                train=tokens.train_logp[flat],
            )

    def row(self, number: int) -> PairedRow:
        """A row by its number."""
        tokens = self.tokens
        start = int(tokens.row_length[:number].sum())
        flat = slice(start, start + int(tokens.row_length[number]))
        return PairedRow(
            sequence=tokens.sequence_ids[int(tokens.row_sequence[number])],
            rollout_rank=int(tokens.row_rollout_rank[number]),
            train_rank=int(tokens.row_train_rank[number]),
            position=tokens.position[flat],
            token=tokens.token[flat],
            rollout=tokens.rollout_logp[flat],
            train=tokens.train_logp[flat],
        )
