"""One engine group: launched, collected, and its end explained."""

from __future__ import annotations

import uuid
from pathlib import Path

from attrs import evolve, field, frozen

from xcfg.errors import EnvironmentFault
from xcfg.model.attempt import SideFailure
from xcfg.model.case import SideConfig
from xcfg.model.json import tupled
from xcfg.model.sample import TokenBatch
from xcfg.model.status import Status
from xcfg.plugin.executor import JOB, Ended, Ending, Job
from xcfg.runner.artifacts import launch_findings
from xcfg.runner.clock import limit_of
from xcfg.runner.collect import Collector
from xcfg.runner.context import Context
from xcfg.runner.durable import encode, make_folders, write_new
from xcfg.runner.environment import declared_environment
from xcfg.runner.exits import write_exit
from xcfg.runner.fingerprint import code_of
from xcfg.runner.launch import LaunchSpec, folders, placed
from xcfg.runner.launching import LOGS, SPEC
from xcfg.runner.rank_record import record_name
from xcfg.runner.report import SideRun
from xcfg.runner.reporter import NO_ROOM_EXIT
from xcfg.runner.schedule import Group
from xcfg.runner.specify import specify
from xcfg.runner.staging import LogParts, first_failure, phase, present


@frozen(kw_only=True)
class GroupOutcome:
    """What one launch gave. ``left`` are side runs it did not come to: they need another engine.

    ``lost``: the launch's machine went away, which is nobody's fault among the side runs.
    """

    runs: tuple[SideRun, ...] = field(converter=tupled)
    left: tuple[SideConfig, ...] = field(default=(), converter=tupled)
    tokens: TokenBatch | None = None
    sampling: SideFailure | None = None
    seconds: float = 0.0
    lost: bool = False


def run_group(group: Group, context: Context, tokens: TokenBatch | None, *, may_lose: bool = True) -> GroupOutcome:
    """Launch the group's engine once and take over all it gives. Never raises for what goes wrong in the launch.

    Where the launch's machine goes away, its unfinished side runs are left over if it ``may_lose`` one, else they fail.
    """
    try:
        launch = context.store.new_launch()
        told = specify(group, context, launch)
        spec = placed(told, launch)
        job = _job(told, group, context, launch)
        _lay_out(told, spec, job, launch)
    except EnvironmentFault as error:
        return _not_launched(group, tokens, error)
    collector = Collector(
        context=context, group=group, spec=spec, launch=launch, logs=LogParts(launch / LOGS), tokens=tokens
    )
    try:
        ended = context.executor.run(job, collector.collect, context.stop)
    except EnvironmentFault as error:  # what was sealed by then stands
        collector.fail_all(SideFailure(status=Status.ENVIRONMENT_ERROR, reason=str(error)))
        return GroupOutcome(runs=collector.runs, tokens=collector.tokens, sampling=collector.sampling)
    unfinished = bool(collector.left) or collector.tokens is None
    lost = unfinished and ended.ending is Ending.LOST and may_lose
    if unfinished and not collector.explained and not context.stop.is_set() and not lost:
        _explain(collector, ended)
    write_exit(launch, ended, complete=collector.clean)
    findings = launch_findings(context.store, launch.name)
    return GroupOutcome(
        runs=[run if run.result is None else evolve(run, findings=findings) for run in collector.runs],
        left=collector.left,
        tokens=collector.tokens,
        sampling=collector.sampling,
        seconds=ended.seconds,
        lost=lost,
    )


def _job(spec: LaunchSpec, group: Group, context: Context, launch: Path) -> Job:
    folder = context.store.relative(launch)
    tokens = () if spec.sample else (context.store.relative(context.store.tokens),)
    return Job(
        root=str(context.store.root),
        folder=folder,
        inputs=(f"{folder}/{SPEC}", f"{folder}/{JOB}", *tokens),
        launch=spec.launch,
        ranks=spec.world_size,
        code=code_of((group.engine, *group.sides), context.registry),
        environment=declared_environment(group.engine, context.registry, uuid.uuid4().hex),
        limits=context.options.limits,
        python=context.registry.interpreter(group.engine.role),
    )


def _lay_out(told: LaunchSpec, spec: LaunchSpec, job: Job, launch: Path) -> None:
    for folder in (launch / LOGS, *folders(spec)):
        make_folders(folder)
    write_new(launch / SPEC, encode(told))
    write_new(launch / JOB, encode(evolve(job, root="")))


def _not_launched(group: Group, tokens: TokenBatch | None, error: EnvironmentFault) -> GroupOutcome:
    failure = SideFailure(status=Status.ENVIRONMENT_ERROR, reason=str(error))
    runs = [SideRun(config=config, failure=failure) for config in group.sides]
    return GroupOutcome(runs=runs, tokens=tokens, sampling=failure if tokens is None else None)


def _explain(collector: Collector, ended: Ended) -> None:
    """Charge the end of a launch to the side run it was working on, or to all where no engine ever stood."""
    ranks, folder = collector.spec.world_size, Path(collector.spec.folder)
    at = phase(folder, ranks)
    before = at not in ("score", "close")
    if collector.sampling is not None:
        collector.fail_all(collector.sampling)
        return
    step = collector.step if collector.left and not before else None
    own = first_failure(step, ranks) if step is not None else None
    known = own or first_failure(folder, ranks)
    if ended.ending is Ending.TIMEOUT:
        late = f"not done after {limit_of(at, collector.context.options.limits):g} s"
        failure = SideFailure(status=Status.TIMEOUT, reason=f"{late} ({at or 'start'}); its processes were ended")
    elif ended.ending is Ending.LOST:
        failure = SideFailure(status=Status.ENVIRONMENT_ERROR, reason=f"its machine was lost ({at or 'start'})")
    elif known is not None:
        failure = known.side_failure()
    else:
        failure = _silent(collector, ended, at, step)
    if before:
        collector.fail_all(failure)
    else:
        collector.fail_next(failure)


def _silent(collector: Collector, ended: Ended, at: str, step: Path | None) -> SideFailure:
    """A process that ended without a word: killed, crashed, or gone without writing what it owes."""
    how = f"signal {ended.code - 128}" if ended.code > 128 else f"exit code {ended.code}"
    if ended.code == NO_ROOM_EXIT:
        return SideFailure(status=Status.ENVIRONMENT_ERROR, reason=f"no space left ({at}), not even for the reason")
    if at in ("", "import", "open"):
        return SideFailure(status=Status.LAUNCH_ERROR, reason=f"the process ended with {how} ({at or 'start'})")
    if ended.code == 0 and step is not None:
        there = present(step, collector.spec.world_size, record_name)
        reason = f"{there} of {collector.spec.world_size} ranks left a record"
        return SideFailure(status=Status.INVALID_ARTIFACT, reason=reason)
    return SideFailure(status=Status.SCORER_ERROR, reason=f"the process ended with {how} ({at})")
