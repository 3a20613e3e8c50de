"""Events made from engine groups and what they gave."""

from __future__ import annotations

from collections.abc import Sequence

from xcfg.runner.events import EnginePlanned, GroupFinished, Scheduled
from xcfg.runner.report import SideRun
from xcfg.runner.schedule import Group


def scheduled(groups: Sequence[Group], *, reused: int, cases: int, jobs: int) -> Scheduled:
    """What is left to do."""
    engines = [
        EnginePlanned(
            role=item.engine.role,
            scorer=item.engine.scorer,
            sides=len(item.sides),
            samples=item.sample is not None,
        )
        for item in groups
    ]
    return Scheduled(engines=engines, reused=reused, sides=sum(item.sides for item in engines), cases=cases, jobs=jobs)


def finished(group: Group, runs: Sequence[SideRun], *, number: int, total: int, seconds: float) -> GroupFinished:
    """The end of a group that gave ``runs`` after ``seconds`` in all its launches."""
    phases = [run.measured.phases for run in runs if run.failure is None]
    spent = sum(item.get(name, 0.0) for item in phases for name in ("sample", "score"))
    return GroupFinished(
        number=number,
        total=total,
        config=group.engine,
        seconds=seconds,
        failed=sum(run.failure is not None for run in runs),
        start_s=max(0.0, seconds - spent),
        score_s=[item["score"] for item in phases if "score" in item],
    )
