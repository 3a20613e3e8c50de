"""Whether a training run looks healthy: no collapse, and no curve that moves."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from xcfg.analyzer.course import course
from xcfg.analyzer.curves import Curves
from xcfg.analyzer.onset import Movement, onset
from xcfg.model.json import Json, freeze

WATCHED = ("kl", "ratio", "gradnorm", "update_norm", "clip_fraction", "entropy")
"""Curves whose rise is a sign of trouble."""
FLAGGED = 0.5
"""The ``collapse`` curve is 0 or 1; a value from here on says collapsed."""


class Health(StrEnum):
    """How a run looks."""

    HEALTHY = "healthy"
    TROUBLED = "troubled"
    CANNOT_TELL = "cannot tell"


@frozen(kw_only=True)
class Checkup:
    """``judged`` maps each curve that could be judged to what it did; ``unjudged`` to its number of points."""

    health: Health
    judged: Mapping[str, Json] = field(factory=dict, converter=freeze)
    unjudged: Mapping[str, int] = field(factory=dict, converter=freeze)


def checkup(curves: Curves) -> Checkup:
    """Healthy where at least one curve could be judged and none is in trouble.

    Trouble is a collapse that the log flags, a reward or task evaluation that collapses, and a watched curve that
    moves. A watched curve whose last points are out leaves it open.
    """
    judged: dict[str, str] = {}
    unjudged: dict[str, int] = {}
    for name in WATCHED:
        found = onset(curves.series(name))
        if found.movement is not Movement.CANNOT_TELL:
            judged[name] = found.movement.value
        elif found.points:
            unjudged[name] = found.points
    for name in ("reward", *curves.evaluations):
        series = curves.series(name)
        taken = course(series)
        if taken is not None:
            judged[name] = "collapses" if taken.collapses else "holds"
        elif len(series.steps):
            unjudged[name] = len(series.steps)
    if collapse_step(curves) is not None:
        judged["collapse"] = "flagged"
    return Checkup(health=_health(set(judged.values())), judged=judged, unjudged=unjudged)


def collapse_step(curves: Curves) -> int | None:
    """The first step that the log itself flags as collapsed."""
    flags = curves.series("collapse")
    flagged = flags.steps[flags.values >= FLAGGED]
    return int(flagged[0]) if len(flagged) else None


def collapses(curves: Curves) -> bool:
    """Whether the run collapses: its log says so, or its reward or a task evaluation does."""
    taken = (course(curves.series(name)) for name in ("reward", *curves.evaluations))
    return collapse_step(curves) is not None or any(item.collapses for item in taken if item is not None)


def _health(seen: set[str]) -> Health:
    if seen & {Movement.MOVED.value, "collapses", "flagged"}:
        return Health.TROUBLED
    if not seen or Movement.UNCONFIRMED.value in seen:
        return Health.CANNOT_TELL
    return Health.HEALTHY
