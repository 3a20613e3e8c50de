"""The second pass: moments about the means of the first, so that nothing cancels."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from xcfg.comparator.blocks import Block
from xcfg.comparator.exchange import Exchange
from xcfg.comparator.totals import reduced_sums

COVARIATES = ("position", "logp", "length")
_SUMS = ("d d", "abs abs", *(f"{name} {other}" for name in COVARIATES for other in ("abs", name)))


class Moments:
    """Centred squares and products. ``means`` holds the mean of d, of abs(d) and of each covariate, a token each.

    ``peak`` is the largest d: weights exp(d - peak) never overflow.
    """

    def __init__(self, means: Mapping[str, float], peak: float, *, weigh: bool) -> None:
        """Nothing seen; ``weigh`` also sums the weights and their squares."""
        self.means, self.peak, self.weigh = means, peak, weigh
        weights = ("weight", "weight weight") if weigh else ()
        self.sums: dict[str, list[float]] = {name: [] for name in (*_SUMS, *weights)}

    def add(self, block: Block) -> None:
        """Take in one block."""
        a = block.absolute - self.means["abs"]
        self._sum("d d", np.square(block.d - self.means["d"]))
        self._sum("abs abs", np.square(a))
        for name, values in (("position", block.position), ("logp", block.rollout)):
            x = values - np.float64(self.means[name])
            self._sum(f"{name} abs", x * a)
            self._sum(f"{name} {name}", np.square(x))
        x = block.lengths - self.means["length"]
        self._sum("length abs", x * np.add.reduceat(a, block.starts))
        self._sum("length length", np.square(x) * block.lengths)
        if self.weigh:
            weight = np.exp(block.d - self.peak)
            self._sum("weight", weight)
            self._sum("weight weight", np.square(weight))

    def _sum(self, name: str, values: np.ndarray) -> None:
        self.sums[name].append(float(values.sum()))

    def reduced(self, exchange: Exchange) -> dict[str, float]:
        """Every sum over all participants."""
        return reduced_sums(self.sums, exchange)


def correlation(name: str, sums: Mapping[str, float]) -> float:
    """Pearson correlation of a covariate with abs(d), in [-1, 1]. Both must vary."""
    scale = math.sqrt(sums[f"{name} {name}"]) * math.sqrt(sums["abs abs"])
    return min(1.0, max(-1.0, sums[f"{name} abs"] / scale))
