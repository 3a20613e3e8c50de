"""The first pass over the paired tokens: extremes, counts, and sums that need no mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from xcfg.comparator.blocks import Block, Place
from xcfg.comparator.exchange import Exchange
from xcfg.comparator.quantile import Histogram

LN2 = math.log(2.0)
_SUMS = (
    *("tokens", "rows", "d", "abs", "mult", "k3", "k3_reverse", "gain", "square_gain", "clipped", "beyond_ln2"),
    *("unequal", "row_sum", "row_max", "position", "logp", "length"),
)
_LARGEST = (
    "abs",
    "-abs",
    "d",
    "-d",
    "row_sum",
    "row_mean",
    "position",
    "-position",
    "logp",
    "-logp",
    "length",
    "-length",
)


@frozen(kw_only=True)
class Clip:
    """The ratio interval in nats: r = exp(d) lies inside exactly where ``low <= d <= high``."""

    low: float
    high: float


class Totals:
    """Running sums (one float64 a block, added exactly at the end), counts and extremes.

    With m = expm1(abs(d)) and w = m / (1 + m), the gain r - 1 is m where d >= 0 and -w elsewhere, and the loss
    1 / r - 1 is -w and m: one transcendental function serves every estimator, without cancellation.
    """

    def __init__(self, clip: Clip) -> None:
        """Nothing seen."""
        self.clip = clip
        self.sums: dict[str, list[float]] = {name: [] for name in _SUMS}
        self.largest = dict.fromkeys(_LARGEST, -math.inf)
        self.histogram = Histogram()
        self.worst: Place | None = None

    def add(self, block: Block) -> None:
        """Take in one block."""
        d, a = block.d, block.absolute
        with np.errstate(over="ignore", invalid="ignore"):
            self._divergence(d, a)
            self._rows(block, d, a)
            self._covariates(block)
        self._counts(block, d, a)
        self._extremes(block, d, a)
        self.histogram.add(a)

    def _sum(self, name: str, value: float) -> None:
        self.sums[name].append(float(value))

    def _most(self, name: str, value: float) -> None:
        self.largest[name] = max(float(value), self.largest[name])

    def _divergence(self, d: np.ndarray, a: np.ndarray) -> None:
        m = np.expm1(a)
        w = m / (1.0 + m)
        w[np.isinf(m)] = 1.0
        up = d >= 0.0
        self._sum("d", d.sum())
        self._sum("abs", a.sum())
        self._sum("mult", m.sum())
        m_rest, w_rest = m - a, a - w  # r - 1 - d where d >= 0, and where d < 0
        self._sum("k3", np.where(up, m_rest, w_rest).sum())
        self._sum("k3_reverse", np.where(up, w_rest, m_rest).sum())
        gain = np.where(up, m, -w)
        self._sum("gain", gain.sum())
        gain *= gain + 2.0
        self._sum("square_gain", gain.sum())

    def _counts(self, block: Block, d: np.ndarray, a: np.ndarray) -> None:
        self._sum("tokens", len(d))
        self._sum("clipped", int(np.count_nonzero((d < self.clip.low) | (d > self.clip.high))))
        self._sum("beyond_ln2", int(np.count_nonzero(a > LN2)))
        self._sum("unequal", _unequal(block.rollout, block.train))

    def _rows(self, block: Block, d: np.ndarray, a: np.ndarray) -> None:
        sums = np.abs(np.add.reduceat(d, block.starts))
        absolute = np.add.reduceat(a, block.starts)
        self._sum("rows", len(sums))
        self._sum("row_sum", sums.sum())
        self._sum("row_max", np.maximum.reduceat(a, block.starts).sum())
        self._most("row_sum", sums.max())
        self._most("row_mean", (absolute / block.lengths).max())

    def _covariates(self, block: Block) -> None:
        lengths = block.lengths.astype(np.float64)
        self._sum("position", block.position.sum(dtype=np.float64))
        self._sum("logp", block.rollout.sum(dtype=np.float64))
        self._sum("length", np.square(lengths).sum())
        for name, values in (("position", block.position), ("logp", block.rollout), ("length", lengths)):
            self._most(name, values.max())
            self._most(f"-{name}", -values.min())

    def _extremes(self, block: Block, d: np.ndarray, a: np.ndarray) -> None:
        self._most("d", d.max())
        self._most("-d", -d.min())
        self._most("-abs", -a.min())
        at = int(np.argmax(a))
        if a[at] > self.largest["abs"]:
            row = int(np.searchsorted(block.starts, at, side="right")) - 1
            self.worst = Place(
                row=int(block.rows[row]),
                position=int(block.position[at]),
                rollout=float(block.rollout[at]),
                train=float(block.train[at]),
            )
        self._most("abs", a[at])

    def reduced(self, exchange: Exchange) -> tuple[dict[str, float], dict[str, float]]:
        """Sums and extremes over all participants."""
        return reduced_sums(self.sums, exchange), _most_of_all(self.largest, exchange)


def reduced_sums(sums: Mapping[str, Sequence[float]], exchange: Exchange) -> dict[str, float]:
    """Every sum, rounded once over the blocks of a participant and once over participants; nan where it overflows."""
    mine = np.array([_total(values) for values in sums.values()])
    gathered = np.stack(exchange.gather(mine))
    return {name: _total(gathered[:, place].tolist()) for place, name in enumerate(sums)}


def _most_of_all(largest: Mapping[str, float], exchange: Exchange) -> dict[str, float]:
    gathered = np.stack(exchange.gather(np.array(list(largest.values()))))
    return dict(zip(largest, gathered.max(axis=0).tolist(), strict=True))


def _total(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # a partial sum beyond the float range; infinities of both signs
        return math.nan


def _unequal(rollout: np.ndarray, train: np.ndarray) -> int:
    """Tokens whose logprobs differ in a bit; of two widths, once both are float64 (which loses nothing)."""
    if rollout.dtype != train.dtype:
        rollout, train = rollout.astype(np.float64), train.astype(np.float64)
    unsigned = f"u{rollout.dtype.itemsize}"
    return int(np.count_nonzero(rollout.view(unsigned) != train.view(unsigned)))
