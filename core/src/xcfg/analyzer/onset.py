"""When a curve starts to move: a robust change-point test.

Rule. Every point is held against the opening, the points before it. A curve moves at the first point from which
``PERSISTENCE`` points in a row lie above ``level + max(SPREADS * spread, MATERIAL * abs(level), ROUNDING)``, where
``level`` is the opening's median and ``spread`` its scaled median absolute deviation, in an opening of fewer than
``SMALL`` points at least its mean moving range. As the opening grows with the curve, a steady trend widens its own
spread and is no onset. Only a rise is a move: KL by its size, the ratio by its distance from 1, the others as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

import numpy as np
from attrs import evolve, frozen

from xcfg.analyzer.curves import Series
from xcfg.model.json import Json

FIRST_OPENING = 4
"""Points before the first that can move: fewer have no spread worth the name."""
OPENING_GROWTH = 1.25
"""The opening is measured anew when it has grown by this: a long log is read in n log n, and a trend stays inside."""
PERSISTENCE = 3
"""Points in a row: single spikes are ordinary in gradient norms and are no onset."""
SPREADS = 6.0
"""Far enough that noise alone moves fewer than one curve of 60 points in a hundred; the tests simulate it."""
MATERIAL = 0.5
"""A curve has to rise by half of its level: less is wandering, however quiet the opening was."""
ROUNDING = 1e-6
"""A distance that rounding to float32 makes; it matters only above an opening of exact zeros or ones."""
SMALL = 16
"""Below this many points the median absolute deviation is often far too small, so the moving range counts as well."""

_MAD_TO_SIGMA = 1.4826
_RANGE_TO_SIGMA = 1.128
"""Factors to a normal deviation: 1 / 0.6745, and the mean range of two normal values."""


class Movement(StrEnum):
    """What a curve did."""

    MOVED = "moved"
    STEADY = "steady"
    UNCONFIRMED = "unconfirmed"
    """The last points are out, too few of them to tell."""
    CANNOT_TELL = "cannot tell"


@frozen(kw_only=True)
class Onset:
    """Movement of one curve. ``step`` is the onset; ``quiet_until`` the last step up to which it had not moved.

    ``level`` and ``limit`` are those of the opening that decided, or of the last one.
    """

    name: str
    movement: Movement
    points: int
    step: int | None = None
    quiet_until: int | None = None
    level: float | None = None
    limit: float | None = None

    def evidence(self, header: str) -> dict[str, Json]:
        """The onset as plain JSON; ``header`` is the column it was read from."""
        return {
            "column": header,
            "movement": self.movement.value,
            "points": self.points,
            "step": self.step,
            "quiet_until": self.quiet_until,
            "opening_level": self.level,
            "limit": self.limit,
        }


def onset(series: Series) -> Onset:
    """When this curve moves. A curve of fewer than ``FIRST_OPENING + PERSISTENCE`` points cannot tell."""
    size = _size(series)
    points = len(size)
    found = Onset(name=series.name, movement=Movement.CANNOT_TELL, points=points)
    if points < FIRST_OPENING + PERSISTENCE:
        return found
    for first, after in _openings(points):
        level, limit = _limit(size[:first])
        if not math.isfinite(limit):  # an infinity among the first points
            continue
        at = _first_run(size[first : after + PERSISTENCE - 1] > limit, after - first)
        quiet = points - 1 if at is None else first + at - 1
        found = evolve(found, movement=Movement.STEADY, quiet_until=int(series.steps[quiet]), level=level, limit=limit)
        if at is not None:
            confirmed = first + at + PERSISTENCE <= points
            movement = Movement.MOVED if confirmed else Movement.UNCONFIRMED
            return evolve(found, movement=movement, step=int(series.steps[first + at]))
    return found


def _size(series: Series) -> np.ndarray:
    """(n,) float64: what has to rise."""
    size = series.values
    if series.name == "kl":
        size = np.abs(size)
    elif series.name == "ratio":
        size = np.abs(size - 1.0)
    return size


def _openings(points: int) -> Iterator[tuple[int, int]]:
    """Sizes of the openings, each with the index up to which it judges."""
    size = FIRST_OPENING
    while size < points:
        after = min(points, max(size + 1, math.ceil(size * OPENING_GROWTH)))
        yield size, after
        size = after


def _limit(opening: np.ndarray) -> tuple[float, float]:
    """Level of an opening and the limit above it; not finite where the opening is not."""
    with np.errstate(invalid="ignore", over="ignore"):
        level = float(np.median(opening))
        spread = _MAD_TO_SIGMA * float(np.median(np.abs(opening - level)))
        if len(opening) < SMALL:
            spread = max(spread, float(np.mean(np.abs(np.diff(opening)))) / _RANGE_TO_SIGMA)
        return level, level + max(SPREADS * spread, MATERIAL * abs(level), ROUNDING)


def _first_run(out: np.ndarray, starts: int) -> int | None:
    """First of ``starts`` indices from which every value is true for ``PERSISTENCE`` places or up to the end."""
    padded = np.concatenate([out, np.ones(PERSISTENCE - 1, dtype=bool)])
    run = np.logical_and.reduce([padded[shift : shift + len(out)] for shift in range(PERSISTENCE)])[:starts]
    return int(np.argmax(run)) if run.any() else None
