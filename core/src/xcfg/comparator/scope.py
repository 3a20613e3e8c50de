"""How far two candidate sequences of logprobs are from a reference, over some tokens, block by block."""

from __future__ import annotations

import math

import numpy as np


class Fit:
    """Distance and correlation of one candidate with the reference. ``total`` and ``largest`` are of abs difference.

    Products are summed about the first reference value seen, which keeps them small where the values are.
    """

    def __init__(self) -> None:
        """Nothing seen."""
        self.total, self.largest = 0.0, 0.0
        self._count = 0
        self._about = 0.0
        self._sums = np.zeros(5)
        self._least, self._most = np.full(2, math.inf), np.full(2, -math.inf)

    def add(self, reference: np.ndarray, candidate: np.ndarray) -> None:
        """Take in (n,) float64 values of both, n at least 1."""
        if not self._count:
            self._about = float(reference[0])
        self._count += len(reference)
        difference = np.abs(candidate - reference)
        x, y = reference - self._about, candidate - self._about
        with np.errstate(over="ignore", invalid="ignore"):
            self.total += float(difference.sum())
            self._sums += [x.sum(), y.sum(), np.square(x).sum(), np.square(y).sum(), (x * y).sum()]
        self.largest = max(self.largest, float(difference.max()))
        self._least = np.minimum(self._least, [reference.min(), candidate.min()])
        self._most = np.maximum(self._most, [reference.max(), candidate.max()])

    def correlation(self) -> float | None:
        """Pearson's coefficient in [-1, 1]; None where one of the two is constant, or a square beyond the range."""
        if (self._least == self._most).any():
            return None
        x, y, xx, yy, xy = (float(value) for value in self._sums)
        n = self._count
        spread = math.sqrt(max(xx - x * x / n, 0.0)) * math.sqrt(max(yy - y * y / n, 0.0))
        return min(1.0, max(-1.0, (xy - x * y / n) / spread)) if 0.0 < spread < math.inf else None


class Scope:
    """Two candidates against one reference: the training logprobs as they stand, and moved."""

    def __init__(self) -> None:
        """Nothing seen."""
        self.count = 0
        self.plain, self.moved = Fit(), Fit()

    def add(self, reference: np.ndarray, plain: np.ndarray, moved: np.ndarray) -> None:
        """Take in (n,) float64 values of all three."""
        self.count += len(reference)
        self.plain.add(reference, plain)
        self.moved.add(reference, moved)


def segments(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start and length of each run of equal values of a non-empty array."""
    starts = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]]))
    return starts, np.diff(np.append(starts, len(labels)))
