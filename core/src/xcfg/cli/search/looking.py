"""The search itself: asked for cases, told their outcomes, until there is a claim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from xcfg.analyzer.search.claim import Claim
from xcfg.analyzer.search.problem import Options, Problem
from xcfg.analyzer.search.session import Search, Trial
from xcfg.cli.commit import commit_run
from xcfg.cli.search.executor import Executed, Executor
from xcfg.cli.search.known import Known
from xcfg.runner.artifacts import remember_cases
from xcfg.runner.lock import locked

if TYPE_CHECKING:
    from xcfg.plugin.registry import Registry


@frozen(kw_only=True)
class Looked:
    """What a search ended with, and the trial it would go on with; None where it has no further question."""

    claim: Claim
    following: Trial | None = None


def look(
    problem: Problem, options: Options, known: Known, executor: Executor, tell: Callable[[Trial, Executed], None]
) -> Looked:
    """Execute trials until the search ends. Whatever interrupts it passes through; what is sealed is kept."""
    search = _search(problem, options, known, executor)
    while trials := search.ask():
        for trial in trials:
            done = executor.execute(trial)
            for run in done.on_disk:
                search.put_on_disk(run)
            search.tell(trial, done.outcome, constructions=done.constructed)
            tell(trial, done)
    return Looked(claim=search.claim())


def review(problem: Problem, options: Options, known: Known, executor: Executor) -> Looked:
    """The claim of what is on disk: pairs of side runs are judged, nothing is executed."""
    search = _search(problem, options, known, executor)
    while (trials := search.ask()) and all(trial.free for trial in trials):
        for trial in trials:
            search.tell(trial, executor.execute(trial).outcome, constructions=0)
    return Looked(claim=search.claim(), following=trials[0] if trials else None)


def _search(problem: Problem, options: Options, known: Known, executor: Executor) -> Search:
    """The search of what is known; a case that cannot be built costs it nothing."""
    return Search(
        problem,
        options,
        outcomes=known.observed,
        on_disk=known.on_disk,
        refused=lambda aligned: bool(executor.refusal(aligned)),
    )


def keep(folder: Path, executor: Executor, registry: Registry) -> None:
    """Write what was judged into the folder's plan and cube."""
    outcomes = list(executor.judged.values())
    if executor.run is None or not outcomes:
        return
    with locked(folder):
        remember_cases(folder, executor.space.plan([item.case for item in outcomes]))
    commit_run(folder, executor.report(), outcomes, registry)
