"""The search as an object that is asked for cases and told their outcomes, and as a loop over a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from attrs import evolve, field, frozen

from xcfg.analyzer.search.claim import Claim, Executions, Stopped
from xcfg.analyzer.search.decide import Purpose, decide
from xcfg.analyzer.search.lattice import Point, lattice
from xcfg.analyzer.search.outcome import Observed, Outcome
from xcfg.analyzer.search.problem import Alignment, Options, Problem
from xcfg.analyzer.search.record import Record
from xcfg.analyzer.search.settle import conclude
from xcfg.errors import InvalidInput
from xcfg.model.json import freeze
from xcfg.model.scorer import Role
from xcfg.model.status import Status


@frozen(kw_only=True)
class SideRun:
    """A side configuration whose run is on disk: production with ``aligned`` set, knobs of the other side ignored."""

    role: Role
    aligned: Alignment = field(converter=freeze)


@frozen(kw_only=True)
class Trial:
    """A case to execute: production with ``aligned`` set.

    ``constructions`` are the engines it builds. ``free``: it builds none, for both side runs are on disk and only the
    comparison is missing, or for the case is refused before anything is built.
    ``repeat``: the case was executed before, near the threshold, and both sides have to run anew.
    """

    aligned: Alignment = field(converter=freeze)
    purpose: Purpose
    constructions: int
    free: bool
    repeat: bool


class Search:
    """Looks for the smallest sufficient alignment of a problem.

    Ask for trials until there are none, tell the outcome of each, read the claim at any time. A search that is given
    the outcomes of an earlier one (``observed``) goes on where that one stopped.
    """

    def __init__(
        self,
        problem: Problem,
        options: Options | None = None,
        *,
        outcomes: Iterable[Observed] = (),
        on_disk: Iterable[SideRun] = (),
        refused: Callable[[Alignment], bool] = lambda aligned: False,
    ) -> None:
        """``refused`` tells which alignments are known to be unsupported before anything is built.

        Raises InvalidInput for an outcome or a side run at values that the problem does not have.
        """
        self._options = options or Options()
        self._lattice = lattice(problem)
        self._record = Record(self._lattice, self._options)
        self._asked: dict[Point, Trial] = {}
        self._refused = refused
        self._spent = Executions(
            run=0,
            reused=0,
            constructions=0,
            exhaustive_would_be=prod(len(knob.candidates) + 1 for knob in problem.knobs),
        )
        for run in on_disk:
            self.put_on_disk(run)
        for entry in outcomes:
            self._record.note(self._lattice.encode(entry.aligned), entry.outcome)
            self._spent = evolve(self._spent, reused=self._spent.reused + 1)

    @property
    def observed(self) -> tuple[Observed, ...]:
        """Every outcome known: what resumes the search."""
        return self._record.observed()

    def ask(self) -> tuple[Trial, ...]:
        """The trials whose outcomes are needed next, several only where they are free; empty when the search ends."""
        if not self._asked:
            step = decide(self._lattice, self._record, self._options)
            if not isinstance(step, Stopped):
                trials = {point: self._trial(point, step.purpose) for point in step.points}
                self._asked = trials if self._affordable(trials.values()) else {}
        return tuple(self._asked.values())

    def put_on_disk(self, run: SideRun) -> None:
        """Take note of a side run that was executed beside a trial. Raises InvalidInput for values unknown here."""
        self._record.put_on_disk(run.role, self._lattice.encode(run.aligned))

    def tell(self, trial: Trial, outcome: Outcome, *, constructions: int | None = None) -> None:
        """Take the outcome of a trial that was asked for. Raises InvalidInput for any other.

        ``constructions`` are the engines that were built; None where it was as many as the trial said.
        """
        point = self._lattice.encode(trial.aligned)
        asked = self._asked.pop(point, None)
        if asked is None:
            raise InvalidInput("the outcome of a case that the search did not ask for", where=", ".join(trial.aligned))
        built = 0 if outcome.status is Status.UNSUPPORTED else asked.constructions
        built = built if constructions is None else constructions
        formed = asked.free and outcome.status is not Status.UNSUPPORTED
        self._spent = evolve(
            self._spent,
            run=self._spent.run + (not asked.free),
            reused=self._spent.reused + formed,
            constructions=self._spent.constructions + built,
        )
        self._record.execute(point, outcome)

    def claim(self) -> Claim:
        """What is known by now."""
        step: object = Stopped.UNFINISHED if self._asked else decide(self._lattice, self._record, self._options)
        if not isinstance(step, Stopped):
            step = Stopped.UNFINISHED if self.ask() else Stopped.BUDGET
        return conclude(self._lattice, self._record, self._options, step, self._spent)

    def _trial(self, point: Point, purpose: Purpose) -> Trial:
        aligned = self._lattice.decode(point)
        refused = self._refused(aligned)
        return Trial(
            aligned=aligned,
            purpose=purpose,
            constructions=0 if refused else self._record.constructions(point),
            free=refused or self._record.free(point),
            repeat=point in self._record.runs,
        )

    def _affordable(self, trials: Iterable[Trial]) -> bool:
        budget = self._options.budget
        return budget is None or self._spent.constructions + sum(trial.constructions for trial in trials) <= budget


def search(
    problem: Problem,
    execute: Callable[[Trial], Outcome],
    options: Options | None = None,
    *,
    outcomes: Iterable[Observed] = (),
    on_disk: Iterable[SideRun] = (),
) -> Claim:
    """Execute what the search asks for until it ends; whatever ``execute`` raises passes through."""
    session = Search(problem, options, outcomes=outcomes, on_disk=on_disk)
    while trials := session.ask():
        for trial in trials:
            session.tell(trial, execute(trial))
    return session.claim()
