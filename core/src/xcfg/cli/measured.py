"""What the side runs of a case cost, beside its verdict and outside every identity."""

from __future__ import annotations

from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome, SideOutcome

_BUILDING = ("import", "open")
_SCORING = "score"


def measured_documents(outcome: CaseOutcome) -> dict[str, Json]:
    """Seconds and bytes of each side.

    ``build_s`` is null on a side run that an engine scored which had been built for another one; ``score_s`` covers all
    repeats. ``tokens_per_s`` counts the active response tokens of one pass over its seconds; ``peak_bytes`` is the
    peak resident memory of each rank with the processes its engine started.
    """
    sides = {"rollout": outcome.rollout, "training": outcome.training}
    return {role: _side(side, outcome.comparison.active_tokens) for role, side in sides.items()}


def _side(side: SideOutcome, active_tokens: int) -> Json:
    phases, repeats = side.measured.phases, side.measured.repeats.get("count", 1)
    building = [phases[name] for name in _BUILDING if name in phases]
    scoring = phases.get(_SCORING)
    return {
        "build_s": sum(building) if building else None,
        "score_s": scoring,
        "tokens_per_s": active_tokens * repeats / scoring if scoring and active_tokens else None,
        "peak_bytes": dict(side.measured.peak_rss),
    }
