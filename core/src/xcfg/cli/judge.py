"""From side runs to judged cases: the place where plan, runner and comparator meet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from xcfg.comparator.compare import compare
from xcfg.comparator.repeat import repeat_findings
from xcfg.comparator.sampled import compare_sampled
from xcfg.comparator.verdict import failed
from xcfg.model.outcome import CaseOutcome, SideOutcome
from xcfg.model.result import Comparison
from xcfg.model.status import Status

if TYPE_CHECKING:
    from xcfg.model.case import Case
    from xcfg.model.outcome import PairedTokens
    from xcfg.model.plan import Plan
    from xcfg.model.tolerance import ToleranceContract
    from xcfg.plugin.registry import Registry
    from xcfg.runner.report import RunReport, SideRun


def contract_of(plan: Plan, registry: Registry) -> ToleranceContract:
    """The tolerance contract the experiment names, by id or by a path relative to its file."""
    return registry.contract(plan.experiment.contract, root=Path(plan.root))


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
    findings = tuple(
        finding
        for side in sides
        if side is not None
        for finding in (*side.findings, *repeat_findings(side.config.role.value, side.measured))
    )
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
    results = []
    for config in (case.rollout, case.training):
        side = run.sides.get(config.digest())
        if side is None or side.result is None:
            status, reason = _why(side)
            return failed(status, f"{config.role.value}: {reason}", contract), None
        results.append(side.result)
    rollout, training = results
    clip = plan.experiment.clip_range
    if case.id == plan.baseline and run.tokens is not None and _forced(case):
        return compare_sampled(rollout, training, run.tokens, contract, baseline_dtype=row, clip_range=clip)
    return compare(rollout, training, contract, baseline_dtype=row, clip_range=clip)


def _forced(case: Case) -> bool:
    """Whether the rollout took the decode path: only then must it give the very numbers reported while sampling."""
    return case.rollout.knobs.get("rollout.scoring_path") == "forced_decode"


def _why(side: SideRun | None) -> tuple[Status, str]:
    if side is None or side.failure is None:
        return Status.LAUNCH_ERROR, "the side was not run"
    return Status(side.failure.status), side.failure.reason


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
