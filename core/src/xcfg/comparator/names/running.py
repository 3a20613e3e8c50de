"""Statistics of values that arrive a block at a time, in memory that does not grow with them."""

from __future__ import annotations

import math

import numpy as np
from attrs import define, field

from xcfg.comparator.blocks import Block


def row_sums(block: Block, values: np.ndarray) -> np.ndarray:
    """(R,) float64 sum of each row of the (n,) values."""
    sums: np.ndarray = np.add.reduceat(values, block.starts, dtype=np.float64)
    return sums


def row_means(block: Block, values: np.ndarray) -> np.ndarray:
    """(R,) float64 mean of each row of the (n,) values."""
    means: np.ndarray = row_sums(block, values) / block.lengths
    return means


@define
class Mean:
    """Arithmetic mean; nan of nothing."""

    count: int = 0
    total: float = 0.0

    def add(self, values: np.ndarray) -> None:
        """Take in (n,) float64 numbers or flags."""
        self.count += len(values)
        self.total += float(np.sum(values))

    @property
    def value(self) -> float:
        """The mean so far."""
        return self.total / self.count if self.count else math.nan


@define
class Range:
    """Extremes; infinite of nothing."""

    low: float = math.inf
    high: float = -math.inf

    def add(self, values: np.ndarray) -> None:
        """Take in (n,) numbers."""
        self.low = min(self.low, float(np.min(values)))
        self.high = max(self.high, float(np.max(values)))


@define
class Spread:
    """Mean and centred sum of squares, joined block by block.

    Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979),
    https://doi.org/10.1007/978-3-642-51461-6_3: nothing cancels where the values are large beside their spread.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, values: np.ndarray) -> None:
        """Take in (n,) numbers, n > 0."""
        new, mean = len(values), float(np.mean(values))
        total, gap = self.count + new, mean - self.mean
        self.squares += float(np.sum(np.square(values - mean))) + gap * gap * (self.count * new / total)
        self.mean += gap * (new / total)
        self.count = total

    def deviation(self, *, lost: int) -> float:
        """Standard deviation over count - ``lost`` degrees of freedom; nan where that is nothing."""
        freedom = self.count - lost
        return math.sqrt(self.squares / freedom) if freedom > 0 else math.nan


@define
class Correlation:
    """Pearson correlation of pairs in [-1, 1]; nan where one of the two does not vary."""

    x: Spread = field(factory=Spread)
    y: Spread = field(factory=Spread)
    x_range: Range = field(factory=Range)
    y_range: Range = field(factory=Range)
    product: float = 0.0

    def add(self, x: np.ndarray, y: np.ndarray) -> None:
        """Take in (n,) pairs, n > 0."""
        x_mean, y_mean = float(np.mean(x)), float(np.mean(y))
        old, new = self.x.count, len(x)
        gaps = (x_mean - self.x.mean) * (y_mean - self.y.mean)
        self.product += float(np.sum((x - x_mean) * (y - y_mean))) + gaps * (old * new / (old + new))
        self.x.add(x)
        self.y.add(y)
        self.x_range.add(x)
        self.y_range.add(y)

    @property
    def value(self) -> float:
        """The correlation so far."""
        if self.x_range.low >= self.x_range.high or self.y_range.low >= self.y_range.high:
            return math.nan
        scale = math.sqrt(self.x.squares) * math.sqrt(self.y.squares)
        return min(1.0, max(-1.0, self.product / scale)) if scale > 0.0 else math.nan
