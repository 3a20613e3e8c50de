"""The course of a curve that should rise: a reward or a task evaluation."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from xcfg.analyzer.curves import Series
from xcfg.model.json import Json

WINDOW = 3
WINDOWS = 12
"""Points of which a median is taken at the start, at the end and at the peak, so that one point decides nothing:
``WINDOW``, in a long curve one part in ``WINDOWS`` of it, as the highest of many short medians is high by chance."""
NOISES = 4.0
"""A rise or fall is at least this many times the noise; the tests simulate how often noise alone does it."""
MATERIAL = 0.1
"""A rise or fall is at least a tenth of the larger of the two levels it lies between."""
LOST = 0.5
"""A collapse takes back at least half of the rise."""

_MAD_TO_SIGMA = 1.4826
_SECOND_DIFFERENCE = 6.0**0.5
"""Deviation of x[i-1] - 2 x[i] + x[i+1] in units of that of white noise."""


@frozen(kw_only=True)
class Course:
    """Levels are medians of a window: ``start`` the first, ``end`` the last, ``peak`` the highest, first of equals,
    around ``peak_step``. ``noise`` is the deviation of a point about the curve.
    """

    name: str
    points: int
    start: float
    peak: float
    peak_step: int
    end: float
    noise: float

    @property
    def rises(self) -> bool:
        """The peak lies clearly above the start."""
        return self._clear(self.start, self.peak)

    @property
    def rises_then_collapses(self) -> bool:
        """The curve rises, and at its end has lost ``LOST`` of the rise or more."""
        lost = self.peak - self.end
        return self.rises and lost >= max(LOST * (self.peak - self.start), NOISES * self.noise)

    @property
    def collapses(self) -> bool:
        """It rises and collapses, or ends clearly below its start."""
        return self.rises_then_collapses or self._clear(self.end, self.start)

    def evidence(self, header: str) -> dict[str, Json]:
        """The course as plain JSON; ``header`` is the column it was read from."""
        return {
            "column": header,
            "points": self.points,
            "start": self.start,
            "peak": self.peak,
            "peak_step": self.peak_step,
            "end": self.end,
            "noise": self.noise,
        }

    def _clear(self, low: float, high: float) -> bool:
        return clearly_below(low, high, self.noise)


def clearly_below(low: float, high: float, noise: float) -> bool:
    """Whether a level lies below another by more than the noise of a point and by a material part of the larger."""
    return high > low and high - low >= max(NOISES * noise, MATERIAL * max(abs(low), abs(high)))


def course(series: Series) -> Course | None:
    """The course of a curve; None where fewer than ``2 * WINDOW + 1`` finite points cannot tell."""
    finite = np.isfinite(series.values)
    steps, values = series.steps[finite], series.values[finite]
    if len(values) < 2 * WINDOW + 1:
        return None
    window = max(WINDOW, len(values) // WINDOWS)
    medians = np.median(np.lib.stride_tricks.sliding_window_view(values, window), axis=1)
    top = int(np.argmax(medians))
    bends = np.abs(values[:-2] - 2.0 * values[1:-1] + values[2:])
    return Course(
        name=series.name,
        points=len(values),
        start=float(medians[0]),
        peak=float(medians[top]),
        peak_step=int(steps[top + window // 2]),
        end=float(medians[-1]),
        noise=_MAD_TO_SIGMA * float(np.median(bends)) / _SECOND_DIFFERENCE,
    )
