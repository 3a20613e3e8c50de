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
    from xcfg.plugin.registry import Registry
    from xcfg.runner.report import RunReport, SideRun

_AGAIN = (Status.LAUNCH_ERROR, Status.ENVIRONMENT_ERROR, Status.SCORER_ERROR, Status.TIMEOUT)
"""Outcomes of which another try may give a verdict: they are not taken over."""


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


def known(space: AlignmentSpace, folder: Path, contract: ToleranceContract, registry: Registry | None = None) -> Known:
    """What the folder knows, judged again from the sealed tensors.

    With ``registry``, attempts that other code made than the plugins' now are left out, as when a run resumes. Raises
    ArtifactError where the folder is damaged.
    """
    if not (folder / "run.json").is_file():
        return Known()
    found = {case.id: (case, chosen) for case in load_plan(folder).cases if (chosen := space.chosen(case)) is not None}
    cases = [space.case(chosen) for _, chosen in found.values()]
    plan = space.plan(cases)
    run = _accepted(load_run(folder, plan), folder, registry)
    judged = {item.case.id: item for item in judge(plan, run, contract) if _counts(item.case, item, run)}
    repeats = _repeats(space, folder, cases, run, contract, registry)
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


def _counts(case: Case, item: CaseOutcome, run: RunReport) -> bool:
    """Whether the folder says something of a case that another try would not change."""
    if case.rejected is not None:
        return True
    both = all(config.digest() in run.sides for config in (case.rollout, case.training))
    return both and item.comparison.status not in _AGAIN


def _accepted(run: RunReport, folder: Path, registry: Registry | None) -> RunReport:
    """The run without attempts that a resumed run would not take."""
    if registry is None:
        return run
    store = Store(folder)
    kept = {}
    for digest, side in run.sides.items():
        found = newest(store, side.side_id) if side.side_id else None
        if side.result is None or (found is not None and not objection(side.config, found, registry)):
            kept[digest] = side
    return evolve(run, sides=kept)


def _repeats(
    space: AlignmentSpace,
    folder: Path,
    cases: Sequence[Case],
    run: RunReport,
    contract: ToleranceContract,
    registry: Registry | None,
) -> dict[str, list[Outcome]]:
    """The outcomes of cases that a search executed more than once, by case id, the first execution first."""
    executions: dict[str, list[Execution]] = {}
    for item in read_log(folder).executions:
        executions.setdefault(item.case, []).append(item)
    found = {}
    for case in cases:
        pairs = [_pair(folder, case, entry, run, registry) for entry in executions.get(case.id, [])]
        runs = [evolve(run, sides={**run.sides, **pair}) for pair in pairs if pair]
        if len(runs) > 1:
            found[case.id] = [outcome_of(judge(space.plan([case]), each, contract)[0], contract) for each in runs]
    return found


def _pair(folder: Path, case: Case, entry: Execution, run: RunReport, registry: Registry | None) -> dict[str, SideRun]:
    """Both sides of one execution, by digest; empty where one failed or was made with something else."""
    pair = {}
    for config, number in ((case.rollout, entry.rollout_attempt), (case.training, entry.training_attempt)):
        side = run.sides.get(config.digest())
        stored = attempt(folder, side.side_id, number) if side is not None and side.side_id else None
        if side is None or stored is None or (registry is not None and objection(config, stored, registry)):
            return {}
        pair[config.digest()] = side_run(Store(folder), config, side.side_id, stored)
    return pair
