"""Paired active tokens in blocks of whole rows: what every metric and detector reads, in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
from attrs import frozen

BLOCK_TOKENS = 1 << 16
"""Tokens from which a block is closed: its float64 temporaries stay in a core's own cache."""


@frozen(kw_only=True, eq=False, slots=False)
class Block:
    """Some rows of a comparison, each one sequence's active tokens; never empty, and no row is.

    ``sequence`` (R,) int64 number of each row's sequence in UTF-8 order of the ids; ``starts`` and ``lengths`` (R,)
    int64 places of the rows in the flat arrays. ``position`` (n,) int64 from 0 in the response, ``rollout`` and
    ``train`` (n,) float32 or float64 natural-log probabilities.
    """

    sequence: np.ndarray
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


class Pairs(Protocol):
    """The judged rows of a comparison, in order of (sequence, ranks). Every call reads them from the start."""

    def blocks(self) -> Iterator[Block]:
        """Blocks of about ``BLOCK_TOKENS`` tokens; where they are cut depends on the rows' lengths alone."""
