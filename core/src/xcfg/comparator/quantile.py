"""Exact order statistics of streamed values: count them by their leading bits, then keep only the bins that matter.

The bit patterns of non-negative float64 values sort as the values do, so a bin of equal leading bits is a range of
values. The first pass counts bins; a later pass keeps the values of the few bins that hold a wanted rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from attrs import frozen

from xcfg.comparator.exchange import Exchange

BITS = 16
LIMIT = 1 << 21
"""Values in one bin above which its next bits are counted before any value is kept (16 MiB of float64)."""

Magnitudes = Callable[[], Iterable[np.ndarray]]
"""Reads the non-negative float64 values again, in pieces."""


class Histogram:
    """Counts of non-negative float64 values by their 16 bits above ``shift``, where the higher bits are ``prefix``."""

    def __init__(self, shift: int = 64 - BITS, prefix: int = 0) -> None:
        """Nothing counted."""
        self.counts = np.zeros(1 << BITS, dtype=np.int64)
        self.shift, self.prefix = shift, prefix

    def add(self, values: np.ndarray) -> None:
        """Count (n,) values."""
        keys = values.view(np.uint64) >> np.uint64(self.shift)
        if self.shift + BITS < 64:
            keys = keys[keys >> np.uint64(BITS) == np.uint64(self.prefix)]
        if len(keys):
            places = (keys - np.uint64(self.prefix << BITS)).astype(np.intp)
            low = int(places.min())
            found = np.bincount(places - low)
            self.counts[low : low + len(found)] += found

    def total(self, exchange: Exchange) -> np.ndarray:
        """The counts of all participants."""
        parts = exchange.gather(self.counts.astype(np.float64))
        counts: np.ndarray = np.sum(np.stack(parts), axis=0).astype(np.int64)
        return counts


@frozen(kw_only=True)
class Window:
    """The values whose bits above ``shift`` are ``prefix``: ``inside`` of them, ``below`` smaller ones, some ranks."""

    prefix: int
    shift: int
    below: int
    inside: int
    ranks: tuple[int, ...]


class Selection:
    """The values at ``ranks`` (from 0, ascending order) of all values that ``histogram`` counted.

    Between construction and :meth:`result` every value is shown once more through :meth:`add`. ``magnitudes`` is read
    only where one bin holds more than ``LIMIT`` values.
    """

    def __init__(self, histogram: Histogram, ranks: Sequence[int], magnitudes: Magnitudes, exchange: Exchange) -> None:
        """Choose the windows whose values must be kept."""
        pending = _split(histogram, 0, ranks, exchange)
        self._windows: list[Window] = []
        while pending:
            window = pending.pop()
            if window.inside <= LIMIT or window.shift == 0:
                self._windows.append(window)
                continue
            finer = Histogram(window.shift - BITS, window.prefix)
            for values in magnitudes():
                finer.add(values)
            pending += _split(finer, window.below, window.ranks, exchange)
        self._kept: list[list[np.ndarray]] = [[] for _ in self._windows]
        self._exchange = exchange

    def add(self, values: np.ndarray) -> None:
        """Keep those of (n,) values that lie in a window."""
        keys = values.view(np.uint64)
        for window, kept in zip(self._windows, self._kept, strict=True):
            if window.shift:
                kept.append(values[keys >> np.uint64(window.shift) == np.uint64(window.prefix)])

    def result(self) -> dict[int, float]:
        """The value of each rank."""
        found: dict[int, float] = {}
        for window, kept in zip(self._windows, self._kept, strict=True):
            if window.shift == 0:  # one value wide: the bits themselves
                found |= dict.fromkeys(window.ranks, float(np.uint64(window.prefix).view(np.float64)))
                continue
            mine = np.concatenate([np.zeros(0), *kept])
            values = np.concatenate(list(self._exchange.gather(mine)))
            places = [rank - window.below for rank in window.ranks]
            values.partition(places)
            found |= {rank: float(values[place]) for rank, place in zip(window.ranks, places, strict=True)}
        return found


def percentile_ranks(count: int, percents: Sequence[float]) -> list[int]:
    """The ranks from which the percentiles of ``count`` values are interpolated."""
    places = [(count - 1) * (percent / 100.0) for percent in percents]
    return sorted({rank for place in places for rank in (math.floor(place), math.ceil(place))})


def percentile(count: int, percent: float, values: dict[int, float]) -> float:
    """Linear interpolation between the two neighbouring ranks, as ``numpy.percentile(method="linear")``."""
    place = (count - 1) * (percent / 100.0)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    part = place - math.floor(place)
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1.0 - part)


def _split(histogram: Histogram, below: int, ranks: Sequence[int], exchange: Exchange) -> list[Window]:
    counts = histogram.total(exchange)
    ends = below + np.cumsum(counts)
    by_bin: dict[int, list[int]] = {}
    for rank in ranks:
        by_bin.setdefault(int(np.searchsorted(ends, rank, side="right")), []).append(rank)
    return [
        Window(
            prefix=(histogram.prefix << BITS) + place,
            shift=histogram.shift,
            below=int(ends[place] - counts[place]),
            inside=int(counts[place]),
            ranks=tuple(chosen),
        )
        for place, chosen in by_bin.items()
    ]
