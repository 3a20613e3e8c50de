"""From the paired tokens to the verdict: the part that live engines, recorded files and arrays share."""

from __future__ import annotations

import math

import numpy as np
from attrs import evolve

from xcfg.comparator.blocks import NamedPairs
from xcfg.comparator.drift import Drift, drift
from xcfg.comparator.exchange import ALONE, Exchange
from xcfg.comparator.observation import observation_findings
from xcfg.comparator.shift import shift_findings
from xcfg.comparator.tolerance import Row
from xcfg.comparator.verdict import decide, within
from xcfg.comparator.worst import worst_of_all, worst_token
from xcfg.model.knob import SourceClass
from xcfg.model.result import Comparison, Finding, WorstToken
from xcfg.model.status import Status


def judged(
    base: Comparison,
    pairs: NamedPairs,
    row: Row,
    clip_interval: tuple[float, float],
    baseline: Row | None = None,
    exchange: Exchange = ALONE,
) -> Comparison:
    """``base`` with status, metrics, worst token and findings of at least one active token, all of them finite.

    ``row`` judges; ``baseline`` is the row of ``within_baseline_row`` where that is asked.
    """
    numbers = drift(pairs, clip_interval, exchange)
    mine = None if numbers.worst is None else worst_token(pairs.row(numbers.worst.row), numbers.worst.position)
    worst = worst_of_all(mine, exchange)
    defect = decide(numbers, row, f"in sequence {worst.sequence!r} at position {worst.position}")
    return evolve(
        base,
        status=defect.status,
        reason=defect.reason,
        active_tokens=numbers.tokens,
        within_baseline_row=None if baseline is None else within(numbers, baseline),
        metrics=numbers.metrics,
        worst=worst,
        clip_interval=clip_interval,
        findings=(
            *base.findings,
            *observation_findings(pairs, row.threshold),
            *(shift_findings(pairs) if defect.status is not Status.PASS else ()),
            *_overflow(numbers, worst),
        ),
    )


def _overflow(numbers: Drift, worst: WorstToken) -> list[Finding]:
    if not numbers.overflowed:
        return []
    return [
        Finding(
            source_class=SourceClass.LOGICAL.value,
            subclass="observation",
            rule="metric_overflow",
            evidence={
                "metrics": list(numbers.overflowed),
                "max_abs_dlogp": numbers.metrics["max_abs_dlogp"],
                "log_of_largest_float": math.log(np.finfo(np.float64).max),
                "rollout_logp": worst.rollout_logp,
                "train_logp": worst.train_logp,
            },
            advice="a drift this large takes exp(d) beyond the float range; the named metrics are left out, not "
            "replaced, and the pair cannot pass",
        )
    ]
