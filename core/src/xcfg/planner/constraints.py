"""The experiment's own rules about which combinations make sense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcfg.model.case import Rejection
from xcfg.model.json import Json
from xcfg.model.knob import Constraint

CONSTRAINT = "constraint"


def broken_constraint(constraints: Sequence[Constraint], values: Mapping[str, Json]) -> Rejection | None:
    """The rejection of a combination of knob values, with the reason of every rule it breaks."""
    reasons = [constraint.reason for constraint in constraints if constraint.violated(values)]
    return Rejection(kind=CONSTRAINT, reason="; ".join(reasons)) if reasons else None
