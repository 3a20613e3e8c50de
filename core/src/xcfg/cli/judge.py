"""From side runs to judged cases: the place where plan, runner and comparator meet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from attrs import evolve, frozen

from xcfg.comparator.compare import compare
from xcfg.comparator.frozen import FrozenTokens, frozen_tokens
from xcfg.comparator.repeat import repeat_findings
from xcfg.comparator.sampled import compare_sampled
from xcfg.comparator.verdict import failed
from xcfg.model.outcome import CaseOutcome, SideOutcome
from xcfg.model.result import Comparison
from xcfg.model.status import Status

if TYPE_CHECKING:
    from xcfg.model.attempt import SideResult
    from xcfg.model.case import Case, SideConfig
    from xcfg.model.outcome import PairedTokens
    from xcfg.model.plan import Plan
    from xcfg.model.tolerance import ToleranceContract
    from xcfg.plugin.registry import Registry
    from xcfg.runner.report import RunReport, SideRun


def contract_of(plan: Plan, registry: Registry) -> ToleranceContract:
    """The tolerance contract the experiment names, by id or by a path relative to its file."""
    return registry.contract(plan.experiment.contract, root=Path(plan.root))


def judge(plan: Plan, run: RunReport, contract: ToleranceContract) -> tuple[CaseOutcome, ...]:
    """Every case of the plan that was executed or that no engine supports, in plan order.

    A case is left out where a side was never run and the other did not fail.

    The baseline is judged first: its dtype gives the row that ``within_baseline_row`` of the others refers to. Where a
    slice left the baseline out and it was not run, there is no such row and the field stays unknown.
    """
    tokens = None if run.tokens is None else frozen_tokens(run.tokens)
    court = _Court(plan=plan, run=run, contract=contract, frozen=tokens)
    first, _ = court.compared(plan.case(plan.baseline), "")
    return tuple(court.outcome(case, first.dtype) for case in plan.cases if court.has(case))


class _Options(TypedDict):
    """Keyword arguments that ``compare`` and ``compare_sampled`` share."""

    baseline_dtype: str
    clip_range: tuple[float, float] | None
    frozen: FrozenTokens | None


@frozen(kw_only=True)
class _Court:
    """What every case of one run is judged with. ``row`` names the baseline's dtype, empty where it is not known."""

    plan: Plan
    run: RunReport
    contract: ToleranceContract
    frozen: FrozenTokens | None

    def has(self, case: Case) -> bool:
        """Whether there is anything to say of a case."""
        if case.rejected is not None:
            return case.rejected.kind == "unsupported"
        sides = [self.run.sides.get(side.digest()) for side in (case.rollout, case.training)]
        return None not in sides or any(side is not None and side.failure is not None for side in sides)

    def outcome(self, case: Case, row: str) -> CaseOutcome:
        if case.rejected is not None:
            refused = failed(Status.UNSUPPORTED, case.rejected.reason, self.contract)
            return CaseOutcome(case=case, comparison=refused, rollout=SideOutcome(), training=SideOutcome())
        comparison, tokens = self.compared(case, row)
        sides = [self.run.sides.get(side.digest()) for side in (case.rollout, case.training)]
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

    def compared(self, case: Case, row: str) -> tuple[Comparison, PairedTokens | None]:
        results = []
        sides = [(config, self.run.sides.get(config.digest())) for config in (case.rollout, case.training)]
        for config, side in sorted(sides, key=lambda item: item[1] is None):  # a failure before what was never run
            if side is None or side.result is None:
                status, reason = _why(side)
                return failed(status, f"{config.role.value}: {reason}", self.contract), None
            if unproven := _unproven(config, side.result):
                reason = f"{config.role.value} has no provenance of {', '.join(unproven)}"
                return failed(Status.INVALID_PROVENANCE, reason, self.contract), None
            results.append(side.result)
        rollout, training = results
        options: _Options = {
            "baseline_dtype": row,
            "clip_range": self.plan.experiment.clip_range,
            "frozen": self.frozen,
        }
        if case.id == self.plan.baseline and self.run.tokens is not None and _forced(case):
            return compare_sampled(rollout, training, self.run.tokens, self.contract, **options)
        return compare(rollout, training, self.contract, **options)


def _unproven(config: SideConfig, result: SideResult) -> list[str]:
    """Knobs and operators asked for of which the evidence says nothing: the comparator sees only what is there."""
    operators = [f"operators.{name}" for name in config.operators if name not in result.provenance.operators]
    return sorted([name for name in config.knobs if name not in result.provenance.knobs] + operators)


def _forced(case: Case) -> bool:
    """Whether the rollout took the decode path, its logprobs its own: only then must it give those of sampling."""
    return case.rollout.knobs.get("rollout.scoring_path") == "forced_decode" and not case.rollout.operators


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
