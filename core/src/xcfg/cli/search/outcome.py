"""A judged case as the search reads it, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from xcfg.analyzer.search.outcome import Outcome
from xcfg.comparator.tolerance import row

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome, SideOutcome
    from xcfg.model.tolerance import ToleranceContract

SCORING = "score"
"""The phase of a side run that a production run pays for again and again; the others are paid once."""


def outcome_of(judged: CaseOutcome, contract: ToleranceContract) -> Outcome:
    """The outcome on the row of the production dtype: whether an alignment brings that contract within reach."""
    comparison = judged.comparison
    return Outcome(
        status=comparison.status,
        within=comparison.within_baseline_row,
        max_abs_dlogp=comparison.metrics.get("max_abs_dlogp"),
        threshold=row(comparison.baseline_dtype or comparison.dtype, contract).threshold,
        reason=comparison.reason,
    )


@frozen(kw_only=True)
class Cost:
    """``seconds`` of scoring on both sides, ``memory`` the larger side's peak in bytes; None where not recorded."""

    seconds: float | None
    memory: int | None


def cost_of(judged: CaseOutcome) -> Cost:
    """What a case cost."""
    sides = (judged.rollout, judged.training)
    seconds = [side.measured.phases.get(SCORING) for side in sides]
    memory = [_memory(side) for side in sides]
    return Cost(
        seconds=None if None in seconds else sum(item for item in seconds if item is not None),
        memory=max((item for item in memory if item is not None), default=None),
    )


def _memory(side: SideOutcome) -> int | None:
    """Peak resident bytes of all ranks of a side."""
    peaks = side.measured.peak_rss
    return sum(peaks.values()) if peaks else None
