"""From side runs to judged cases: the place where plan, runner and comparator meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from xcfg.comparator.compare import compare, failed
from xcfg.comparator.sampled import check_sampled, worse
from xcfg.model.outcome import CaseOutcome, SideOutcome
from xcfg.model.result import Comparison
from xcfg.model.status import Status

if TYPE_CHECKING:
    from xcfg.model.case import Case
    from xcfg.model.outcome import PairedTokens
    from xcfg.model.plan import Plan
    from xcfg.model.tolerance import ToleranceContract
    from xcfg.runner.report import RunReport, SideRun


def judge(plan: Plan, run: RunReport, contract: ToleranceContract) -> tuple[CaseOutcome, ...]:
    """Every case of the plan that was not rejected by a constraint or a veto, in plan order.

    The baseline is judged first: its dtype gives the row that ``within_baseline_row`` of the others refers to.
    """
    baseline = plan.case(plan.baseline)
    first, _ = _compared(baseline, plan, run, contract, "")
    return tuple(
        _outcome(case, plan, run, contract, first.dtype)
        for case in plan.cases
        if case.rejected is None or case.rejected.kind == "unsupported"
    )


def _outcome(case: Case, plan: Plan, run: RunReport, contract: ToleranceContract, row: str) -> CaseOutcome:
    if case.rejected is not None:
        refused = failed(Status.UNSUPPORTED, case.rejected.reason, contract)
        return CaseOutcome(case=case, comparison=refused, rollout=SideOutcome(), training=SideOutcome())
    comparison, tokens = _compared(case, plan, run, contract, row)
    sides = [run.sides.get(side.digest()) for side in (case.rollout, case.training)]
    findings = tuple(finding for side in sides if side is not None for finding in side.findings)
    return CaseOutcome(
        case=case,
        comparison=evolve(comparison, findings=(*comparison.findings, *findings)),
        rollout=_side(sides[0]),
        training=_side(sides[1]),
        tokens=tokens,
    )


def _compared(
    case: Case, plan: Plan, run: RunReport, contract: ToleranceContract, row: str
) -> tuple[Comparison, PairedTokens | None]:
    rollout, training = run.sides.get(case.rollout.digest()), run.sides.get(case.training.digest())
    for role, side in (("rollout", rollout), ("training", training)):
        if side is None:
            return failed(Status.LAUNCH_ERROR, f"the {role} side was not run", contract), None
        if side.failure is not None:
            return failed(Status(side.failure.status), f"{role}: {side.failure.reason}", contract), None
    assert rollout is not None and training is not None
    assert rollout.result is not None and training.result is not None
    clip = plan.experiment.clip_range
    comparison, tokens = compare(rollout.result, training.result, contract, baseline_dtype=row, clip_range=clip)
    if case.id != plan.baseline or run.tokens is None or run.tokens.sampled_logprobs is None:
        return comparison, tokens
    finding, sampled = check_sampled(rollout.result, run.tokens)
    if finding is None:
        return comparison, tokens
    other, other_tokens = compare(sampled, training.result, contract, baseline_dtype=row, clip_range=clip)
    chosen = worse(comparison, other)
    kept = tokens if chosen is comparison else other_tokens
    return evolve(chosen, findings=(*chosen.findings, finding)), kept


def _side(run: SideRun | None) -> SideOutcome:
    if run is None:
        return SideOutcome()
    provenance = None if run.result is None else run.result.provenance
    return SideOutcome(
        side_id=run.side_id,
        attempt=run.attempt,
        provenance=provenance,
        failure=run.failure,
        measured=run.measured,
    )


