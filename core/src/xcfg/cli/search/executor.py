"""Executes what a search asks for, on real engines, into one output folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from xcfg.analyzer.search.outcome import Outcome
from xcfg.analyzer.search.session import SideRun as OnDisk
from xcfg.analyzer.search.session import Trial
from xcfg.cli.judge import judge
from xcfg.cli.search.known import Known, has_result
from xcfg.cli.search.log import Execution, append, read_log
from xcfg.cli.search.outcome import outcome_of
from xcfg.cli.search.variants import variants
from xcfg.errors import InvalidInput
from xcfg.model.scorer import Role
from xcfg.model.status import Status
from xcfg.runner.execute import execute
from xcfg.runner.lock import locked

if TYPE_CHECKING:
    from xcfg.analyzer.search.problem import Problem
    from xcfg.model.case import Case
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.tolerance import ToleranceContract
    from xcfg.planner.alignment_space import AlignmentSpace, Chosen
    from xcfg.plugin.executor import Executor as Place
    from xcfg.plugin.registry import Registry
    from xcfg.runner.events import Event
    from xcfg.runner.options import RunOptions
    from xcfg.runner.report import RunReport, SideRun


@frozen(kw_only=True)
class Executed:
    """The outcome of a trial, the engines constructed for it, and the side runs that came with it."""

    outcome: Outcome
    constructed: int = 0
    on_disk: tuple[OnDisk, ...] = ()


@define(kw_only=True)
class Executor:
    """Runs cases of ``space`` into ``folder``. ``sides`` are the newest side runs by digest, ``judged`` by case id."""

    space: AlignmentSpace
    problem: Problem
    registry: Registry
    folder: Path
    options: RunOptions
    contract: ToleranceContract
    on_event: Callable[[Event], None]
    place: Place | None
    run: RunReport | None
    sides: dict[str, SideRun]
    judged: dict[str, CaseOutcome] = field(factory=dict)
    engine_s: float = 0.0
    constructed: int = 0
    held: bool = False
    holding: ExitStack = field(factory=ExitStack)

    def __enter__(self) -> Executor:
        """The folder is held from the first launch on, so that no other run comes between two cases."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Let go of the folder."""
        self.holding.close()

    @classmethod
    def of(cls, known: Known, **settings: object) -> Executor:
        """An executor that starts from what a folder knows."""
        return cls(run=known.run, sides=known.sides(), judged=dict(known.judged), **settings)  # type: ignore[arg-type]

    def execute(self, trial: Trial) -> Executed:
        """Run what the trial lacks and judge it. Raises as :func:`xcfg.runner.execute.execute` does."""
        if refusal := self.refusal(trial.aligned):
            return Executed(outcome=Outcome(status=Status.UNSUPPORTED, reason=refusal))
        case = self.space.case(trial.aligned)
        constructed = 0
        new: tuple[OnDisk, ...] = ()
        if trial.repeat or not all(has_result(self.sides, case, role) for role in Role):
            beside = () if trial.repeat else variants(trial, self.space, self.problem)
            before = self.engine_s
            if trial.repeat and all(item.case != case.id for item in read_log(self.folder).executions):
                self._log(case, trial, 0, 0.0)  # what is repeated was executed by a run: it counts as the first
            constructed = self._launch([case, *(other for _, other in beside)], again=trial.repeat)
            new = self._new(beside)
            self._log(case, trial, constructed, self.engine_s - before)
        self.judged[case.id] = self._judge(case)
        return Executed(outcome=outcome_of(self.judged[case.id], self.contract), constructed=constructed, on_disk=new)

    def refusal(self, aligned: Chosen) -> str:
        """Why the case of an alignment cannot be built, known before anything is; empty where it may."""
        try:
            case = self.space.case(aligned)
        except InvalidInput as error:  # two candidates that contradict each other
            return str(error)
        return "" if case.rejected is None else case.rejected.reason

    @property
    def fake(self) -> bool:
        """Whether any result comes from a fake."""
        return any(run.result is not None and run.result.fake for run in self.sides.values())

    def report(self) -> RunReport:
        """Everything that is known now, as one run."""
        assert self.run is not None
        return evolve(self.run, sides=self.sides)

    def _launch(self, cases: Sequence[Case], *, again: bool) -> int:
        if not self.held:
            self.holding.enter_context(locked(self.folder))
            self.held = True
        options = evolve(self.options, resume=not again)
        plan = self.space.plan(list({case.id: case for case in cases}.values()))
        self.run = execute(plan, self.registry, self.folder, options, on_event=self.on_event, executor=self.place)
        self.sides.update(self.run.sides)
        self.engine_s += self.run.engine_s
        self.constructed += self.run.engines.constructed
        return self.run.engines.constructed

    def _new(self, beside: Sequence[tuple[Chosen, Case]]) -> tuple[OnDisk, ...]:
        return tuple(
            OnDisk(role=role, aligned=chosen)
            for chosen, case in beside
            for role in Role
            if has_result(self.sides, case, role)
        )

    def _judge(self, case: Case) -> CaseOutcome:
        return judge(self.space.plan([case]), self.report(), self.contract)[0]

    def _log(self, case: Case, trial: Trial, constructed: int, engine_s: float) -> None:
        rollout, training = (self.sides.get(side.digest()) for side in (case.rollout, case.training))
        append(
            self.folder,
            Execution(
                case=case.id,
                purpose=trial.purpose.value,
                rollout_attempt=rollout.attempt if rollout else 0,
                training_attempt=training.attempt if training else 0,
                constructed=constructed,
                engine_s=engine_s,
            ),
        )
