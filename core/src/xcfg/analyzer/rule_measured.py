"""Rules 1 and 2: logprobs of the same tokens differ, whatever the training run looks like."""

from __future__ import annotations

from xcfg.analyzer.evidence import Evidence
from xcfg.analyzer.health import Health, checkup
from xcfg.analyzer.taxonomy import INFRASTRUCTURE, UNRESOLVED
from xcfg.model.json import Json
from xcfg.model.result import Finding
from xcfg.model.status import Status

NOT_ALGORITHM = "infrastructure_not_algorithm"
STILL_DRIFTS = "healthy_run_still_drifts"


def infrastructure_not_algorithm(evidence: Evidence) -> Finding | None:
    """Rule 1: the contract is violated under one checkpoint, the same ids, masks and version.

    Before an optimizer step the algorithm and the reward have no part in the selected token's logprob. Fields that were
    assumed equal lower the confidence.
    """
    comparison = evidence.comparison
    if comparison.status is not Status.FAIL:
        return None
    worst: dict[str, Json] = {}
    if comparison.worst is not None:
        worst = {"worst": {"sequence": comparison.worst.sequence, "position": comparison.worst.position}}
    return Finding(
        source_class=UNRESOLVED,
        subclass=INFRASTRUCTURE,
        rule=NOT_ALGORITHM,
        evidence={**evidence.numbers(), **worst},
        advice="the two engines score the same tokens under the same weights differently: look in the infrastructure, "
        "not in the algorithm or the reward; no change of learning rate, clipping or reward mends this"
        + evidence.caveat(),
        confidence=evidence.measured(),
    )


def healthy_run_still_drifts(evidence: Evidence) -> Finding | None:
    """Rule 2: the contract is violated although the training run looks healthy."""
    if evidence.comparison.status is not Status.FAIL or evidence.curves is None:
        return None
    seen = checkup(evidence.curves)
    if seen.health is not Health.HEALTHY:
        return None
    steps = evidence.curves.step
    return Finding(
        source_class=UNRESOLVED,
        subclass=INFRASTRUCTURE,
        rule=STILL_DRIFTS,
        evidence={
            **evidence.numbers(),
            "steps": [int(steps[0]), int(steps[-1])],
            "curves": seen.judged,
            "too_short": seen.unjudged,
        },
        advice="the training run looks healthy and the contract is violated all the same: it is infrastructure drift, "
        "and a healthy short run is no proof of alignment" + evidence.caveat(),
        confidence=evidence.measured(),
    )
