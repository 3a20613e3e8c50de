"""Executing a plan and judging it, in the stages that its profiles ask for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from xcfg.cli.experiment import Selection, planned
from xcfg.cli.staged import SKIPPED, first_stage, needs_pairs, together
from xcfg.cube.layout import fresh_layout
from xcfg.model.json import tupled
from xcfg.runner.execute import execute

if TYPE_CHECKING:
    from xcfg.cli.progress import Progress
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.plan import Plan
    from xcfg.plugin.executor import Executor
    from xcfg.plugin.registry import Registry
    from xcfg.runner.options import RunOptions
    from xcfg.runner.report import RunReport


@frozen(kw_only=True)
class Executed:
    """``plan`` is what was executed: less than was selected where a stage was not needed."""

    plan: Plan
    report: RunReport
    outcomes: tuple[CaseOutcome, ...] = field(converter=tupled)


@frozen(kw_only=True)
class Executing:
    """Executes plans of one folder."""

    registry: Registry
    folder: Path
    options: RunOptions
    told: Progress
    executor: Executor

    def selected(self, selection: Selection, plan: Plan) -> Executed:
        """Execute ``plan``, which is that of the selection; the pairs of classes only where they tell something."""
        first = first_stage(selection)
        if first is None:
            return self._executed(plan, self.options)
        early = self._executed(planned(first, self.registry), self.options)
        if not needs_pairs(selection, self.registry, early.outcomes):
            self.told.note(SKIPPED)
            return early
        options = evolve(self.options, resume=True)  # what was executed a moment ago is not executed again
        late = self._executed(plan, options, early.report)
        return evolve(late, report=together(early.report, late.report))

    def whole(self, plan: Plan) -> Executed:
        """Execute all of ``plan`` in one stage."""
        return self._executed(plan, self.options)

    def _executed(self, plan: Plan, options: RunOptions, former: RunReport | None = None) -> Executed:
        fresh_layout(plan)  # two cases in one cell are found before any engine is built
        report = execute(
            plan, self.registry, self.folder, options, on_event=self.told, former=former, executor=self.executor
        )
        return Executed(plan=plan, report=report, outcomes=judged(plan, report, self.registry))


def judged(plan: Plan, report: RunReport, registry: Registry) -> Sequence[CaseOutcome]:
    """Every case that was executed, in plan order; one that was executed alone is judged on its own side runs."""
    from xcfg.cli.judge import contract_of, judge  # the comparator is imported after the engines

    contract = contract_of(plan, registry)
    outcomes = judge(plan, report, contract)
    if not report.alone:
        return outcomes
    apart: list[CaseOutcome] = []
    for case in plan.cases:
        own = evolve(report, sides={**report.sides, **report.alone.get(case.id, {})})
        apart += judge(evolve(plan, cases=[case], reference=plan.case(plan.baseline)), own, contract)
    return apart
