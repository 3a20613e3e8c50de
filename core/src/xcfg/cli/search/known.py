"""What an output folder already knows of a space: cases that were executed, side runs, repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from xcfg.analyzer.search.outcome import Observed, Outcome
from xcfg.analyzer.search.session import SideRun as OnDisk
from xcfg.cli.judge import judge
from xcfg.cli.search.log import Execution, read_log
from xcfg.cli.search.outcome import outcome_of
from xcfg.errors import ArtifactError
from xcfg.model.json import freeze, tupled
from xcfg.model.scorer import Role
from xcfg.model.status import Status
from xcfg.runner.acceptance import objection
from xcfg.runner.artifacts import attempt, load_plan, load_run, newest, side_run
from xcfg.runner.store import Store

if TYPE_CHECKING:
    from xcfg.model.case import Case
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.tolerance import ToleranceContract
    from xcfg.planner.alignment_space import AlignmentSpace
    from xcfg.plugin.checkpoint import CheckpointDigest
    from xcfg.plugin.registry import Registry
    from xcfg.runner.report import RunReport, SideRun

_AGAIN = (Status.LAUNCH_ERROR, Status.ENVIRONMENT_ERROR, Status.SCORER_ERROR, Status.TIMEOUT)
"""Outcomes of which another try may give a verdict: a search makes it."""


@frozen(kw_only=True)
class Now:
    """What a side run would be made with now: the plugins, and the content of each checkpoint by path."""

    registry: Registry
    checkpoints: Mapping[str, CheckpointDigest] = field(converter=freeze)


@frozen(kw_only=True)
class Known:
    """``judged`` by case id; ``observed`` one entry an execution; ``on_disk`` every side run with a result.

    ``run`` holds the newest side runs; None where the folder holds no run.
    """

    run: RunReport | None = None
    judged: Mapping[str, CaseOutcome] = field(factory=dict, converter=freeze)
    observed: tuple[Observed, ...] = field(default=(), converter=tupled)
    on_disk: tuple[OnDisk, ...] = field(default=(), converter=tupled)

    def sides(self) -> dict[str, SideRun]:
        """The newest side runs by digest of their configuration."""
        return {} if self.run is None else dict(self.run.sides)


def known(space: AlignmentSpace, folder: Path, contract: ToleranceContract, now: Now | None = None) -> Known:
    """What the folder knows, judged again from the sealed tensors.

    With ``now``, what a resumed run would execute again is left out: attempts that failed, that are damaged, that other
    code made or another checkpoint. Raises ArtifactError where the folder is damaged.
    """
    store = Store(folder)
    if not store.run.is_file() or not store.plan.is_file():  # without a plan: cut off before its first engine
        return Known()
    found = {case.id: (case, chosen) for case in load_plan(folder).cases if (chosen := space.chosen(case)) is not None}
    cases = [space.case(chosen) for _, chosen in found.values()]
    plan = space.plan(cases)
    run = load_run(folder, plan) if now is None else _accepted(load_run(folder, plan, now.checkpoints), store, now)
    judged = {item.case.id: item for item in judge(plan, run, contract) if _counts(item, run, again=now is not None)}
    production = judged.get(space.production.id)
    if production is None or not production.comparison.dtype:  # no row to judge the others on
        judged = {} if production is None else {production.case.id: production}
    repeats = _repeats(space, folder, cases, run, contract, now)
    observed = []
    for case_id, item in judged.items():
        chosen = found[case_id][1]
        outcomes = repeats.get(case_id) or [outcome_of(item, contract)]
        observed += [Observed(aligned=chosen, outcome=outcome) for outcome in outcomes]
    on_disk = [
        OnDisk(role=role, aligned=found[case.id][1])
        for case in cases
        for role in Role
        if has_result(run.sides, case, role)
    ]
    return Known(run=run, judged=judged, observed=observed, on_disk=on_disk)


def has_result(sides: Mapping[str, SideRun], case: Case, role: Role) -> bool:
    """Whether a side of a case was scored."""
    config = case.rollout if role is Role.ROLLOUT else case.training
    run = sides.get(config.digest())
    return run is not None and run.result is not None


def _counts(item: CaseOutcome, run: RunReport, *, again: bool) -> bool:
    """Whether the folder says something of a case; with ``again`` also whether another try would not change it."""
    case = item.case
    if case.rejected is not None:
        return True
    both = all(config.digest() in run.sides for config in (case.rollout, case.training))
    return both and not (again and item.comparison.status in _AGAIN)


def _accepted(run: RunReport, store: Store, now: Now) -> RunReport:
    """The run without attempts that a resumed run would not take."""
    kept = {}
    for digest, side in run.sides.items():
        found = newest(store, side.side_id) if side.side_id else None
        if found is None or found.failure is not None or not objection(side.config, found, now.registry):
            kept[digest] = side
    return evolve(run, sides=kept)


def _repeats(
    space: AlignmentSpace,
    folder: Path,
    cases: Sequence[Case],
    run: RunReport,
    contract: ToleranceContract,
    now: Now | None,
) -> dict[str, list[Outcome]]:
    """The outcomes of cases that a search executed more than once, by case id, the first execution first."""
    executions: dict[str, list[Execution]] = {}
    for item in read_log(folder).executions:
        executions.setdefault(item.case, []).append(item)
    found = {}
    for case in cases:
        made = executions.get(case.id, [])
        pairs = [_pair(folder, case, entry, run, now) for entry in made] if len(made) > 1 else []
        runs = [evolve(run, sides={**run.sides, **pair}) for pair in pairs if pair]
        if len(runs) > 1:
            found[case.id] = [outcome_of(judge(space.plan([case]), each, contract)[0], contract) for each in runs]
    return found


def _pair(folder: Path, case: Case, entry: Execution, run: RunReport, now: Now | None) -> dict[str, SideRun]:
    """Both sides of one execution, by digest; empty where one failed, is damaged or was made with something else."""
    pair = {}
    for config, number in ((case.rollout, entry.rollout_attempt), (case.training, entry.training_attempt)):
        side = run.sides.get(config.digest())
        if side is None or not side.side_id:
            return {}
        try:
            stored = attempt(folder, side.side_id, number)
        except ArtifactError:  # as if it had not been made; where it is the newest attempt the case says so
            return {}
        if stored is None or (now is not None and objection(config, stored, now.registry)):
            return {}
        pair[config.digest()] = side_run(Store(folder), config, side.side_id, stored)
    return pair
