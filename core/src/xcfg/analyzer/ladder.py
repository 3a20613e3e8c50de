"""The alignment ladder: the first rung on which the production contract holds."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from attrs import frozen

from xcfg.model.status import Status


class Level(StrEnum):
    """Rungs, the least intervention first."""

    L0 = "L0"
    """Semantic identity: both sides are asked the same question."""
    L1 = "L1"
    """Observable contract: production as it is, within the limit."""
    L2 = "L2"
    """Source isolation: which knobs matter is being found out; a diagnosis and no fix."""
    L3 = "L3"
    """One local alignment."""
    L4 = "L4"
    """The smallest interacting set."""
    L5 = "L5"
    """Everything aligned, as a diagnostic fallback."""


@frozen(kw_only=True)
class Rung:
    """How far up the ladder it was necessary to go, and whether that is enough."""

    level: Level
    satisfied: bool
    reason: str


def rung(
    *,
    production: Status | None,
    production_within: bool,
    reference_within: bool | None,
    answer: Collection[str] | None,
    knobs: Collection[str],
    logical: Collection[str] = (),
) -> Rung:
    """The rung of the executed cases.

    ``production`` is the status of the case with nothing aligned (None: not executed) and ``production_within``
    whether it is within the contract; ``reference_within`` the same of everything aligned (None: not judged).
    ``answer`` are the knobs of the smallest passing set known, ``knobs`` all that may be aligned, ``logical`` those
    that bring semantic identity.
    """
    if production_within:
        return Rung(level=Level.L1, satisfied=True, reason="production is within the contract with nothing aligned")
    unlike = production is Status.INVALID_IDENTITY
    if answer is not None:
        return _answered(frozenset(answer), len(knobs), unlike and frozenset(answer) <= frozenset(logical))
    if reference_within is False:
        return Rung(
            level=Level.L5,
            satisfied=False,
            reason="everything aligned still violates the contract: debug the base scoring path first",
        )
    if unlike:
        return Rung(
            level=Level.L0,
            satisfied=False,
            reason="the two sides of production do not score the same thing, and no alignment that mends it is known",
        )
    return Rung(
        level=Level.L2, satisfied=False, reason="no alignment that passes is known yet; every case is a diagnosis"
    )


def _answered(answer: frozenset[str], knobs: int, identity: bool) -> Rung:
    named = ", ".join(sorted(answer))
    if identity:
        return Rung(level=Level.L0, satisfied=True, reason=f"semantic identity is enough: {named}")
    if len(answer) == 1:
        return Rung(level=Level.L3, satisfied=True, reason=f"one local alignment is enough: {named}")
    if len(answer) == knobs:
        return Rung(
            level=Level.L5, satisfied=True, reason=f"nothing less than everything is known to be enough: {named}"
        )
    return Rung(level=Level.L4, satisfied=True, reason=f"an interacting set is enough: {named}")
