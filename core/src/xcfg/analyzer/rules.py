"""The six decision rules together, and what holds where two of them point different ways.

Precedence. A judged difference of logprobs outweighs curves: where the contract is violated (rule 1), gradients that
move first (rule 4) no longer speak for the algorithm. Measured agreement outweighs curves as well: where the reward
collapses with clean alignment (rule 6), a KL that moves first (rule 3) no longer speaks for the infrastructure, as a
failing KL control moves it too. An outweighed finding stays, with confidence low and the rule that outweighs it named.
Rules 3 and 4 exclude each other, as do 1 and 6; rule 2 asks for curves in which neither 3, 4 nor 6 can hold. No rule
changes a verdict, and a comparison that was not judged yields no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve

from xcfg.analyzer.evidence import Evidence
from xcfg.analyzer.rule_curves import (
    CLEAN_COLLAPSE,
    GRADIENTS_FIRST,
    KL_FIRST,
    collapse_with_clean_alignment,
    gradients_before_kl,
    kl_before_gradients,
)
from xcfg.analyzer.rule_measured import NOT_ALGORITHM, healthy_run_still_drifts, infrastructure_not_algorithm
from xcfg.analyzer.rule_ranks import only_some_ranks_drift
from xcfg.model.result import Finding

Rule = Callable[[Evidence], Finding | None]

RULES: tuple[Rule, ...] = (
    infrastructure_not_algorithm,
    healthy_run_still_drifts,
    kl_before_gradients,
    gradients_before_kl,
    only_some_ranks_drift,
    collapse_with_clean_alignment,
)
"""In the order of the measurement contract."""

OUTWEIGHED: Mapping[str, tuple[str, str]] = {
    GRADIENTS_FIRST: (NOT_ALGORITHM, "the measured drift comes first: align the engines, then read the curves again"),
    KL_FIRST: (CLEAN_COLLAPSE, "the measured agreement comes first: a failing KL control moves KL as well"),
}
"""Rule to the rule that outweighs it, and why."""


def decide(evidence: Evidence) -> tuple[Finding, ...]:
    """The findings of all rules, in their order; nothing where the comparison was not judged."""
    if not evidence.comparison.status.judged:
        return ()
    found = [finding for rule in RULES if (finding := rule(evidence)) is not None]
    given = {finding.rule for finding in found}
    return tuple(_weighed(finding, given) for finding in found)


def _weighed(finding: Finding, given: set[str]) -> Finding:
    stronger, why = OUTWEIGHED.get(finding.rule, ("", ""))
    if stronger not in given:
        return finding
    return evolve(
        finding,
        confidence="low",
        evidence={**finding.evidence, "outweighed_by": stronger},
        advice=f"{finding.advice}; {why}",
    )
