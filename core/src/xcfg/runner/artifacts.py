"""What an output folder holds, read back from disk alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import evolve, frozen

from xcfg.errors import ArtifactError, InvalidInput
from xcfg.model.attempt import SideFailure
from xcfg.model.case import SideConfig
from xcfg.model.plan import Plan
from xcfg.model.result import Finding
from xcfg.model.status import Status
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.runner.attempt_files import Attempt, read_attempt, read_failure
from xcfg.runner.binding import read_folder
from xcfg.runner.exits import exit_findings
from xcfg.runner.frozen import load_frozen
from xcfg.runner.plan_file import keep_plan, read_plan
from xcfg.runner.report import Engines, RunReport, SideRun
from xcfg.runner.schedule import baseline_configs, side_configs
from xcfg.runner.seal import sealed
from xcfg.runner.store import Store, side_id


@frozen(kw_only=True)
class Newest:
    """The newest attempt of a side that came to an end: sealed, failed, or no longer what was sealed."""

    number: int
    path: Path
    attempt: Attempt | None = None
    failure: SideFailure | None = None
    refused: str = ""


def newest(store: Store, side: str) -> Newest | None:
    """The newest attempt that ended. One that was cut off left neither seal nor failure and counts as not made."""
    for number, path in reversed(store.attempts(side)):
        try:
            if sealed(path):
                return Newest(number=number, path=path, attempt=read_attempt(path, side, number))
            if (failed := read_failure(path)) is not None:
                return Newest(number=number, path=path, failure=failed.failure)
        except ArtifactError as error:
            return Newest(number=number, path=path, refused=str(error))
    return None


def side_run(store: Store, config: SideConfig, side: str, found: Newest) -> SideRun:
    """A stored attempt as a side run that was not executed now."""
    run = SideRun(config=config, side_id=side, attempt=found.number, path=found.path, reused=True)
    if found.attempt is None:
        refused = SideFailure(status=Status.INVALID_ARTIFACT, reason=found.refused)
        return evolve(run, failure=found.failure or refused)
    return evolve(
        run,
        result=found.attempt.result,
        measured=found.attempt.measured,
        findings=launch_findings(store, found.attempt.surroundings.launch),
    )


def attempt(out: Path, side: str, number: int) -> Newest | None:
    """One sealed attempt of a side by its number; None where it failed. Raises ArtifactError where it is damaged."""
    store = Store(out)
    path = dict(store.attempts(side)).get(number)
    if path is None or not sealed(path):
        return None
    return Newest(number=number, path=path, attempt=read_attempt(path, side, number))


def remember_cases(out: Path, plan: Plan) -> None:
    """Add cases to the folder's plan whose sides were all executed for others; the caller holds the lock."""
    keep_plan(_planned(out), plan)


def launch_findings(store: Store, launch: str) -> tuple[Finding, ...]:
    """What happened to a launch's processes after its side runs were sealed."""
    return exit_findings(store.launch(launch))


def load_plan(out: Path) -> Plan:
    """The plan of a run's folder, with every case ever planned in it.

    Raises InvalidInput where there is none, ArtifactError where it is broken.
    """
    return read_plan(_planned(out))


def _planned(out: Path) -> Path:
    path = Store(out).plan
    if not path.is_file():
        raise InvalidInput(f"{out} holds no run", where=str(path), hint="give the folder that `xcfg run --out` wrote")
    return path


def load_run(out: Path, plan: Plan, checkpoints: Mapping[str, CheckpointDigest] | None = None) -> RunReport:
    """The side runs of ``plan`` from disk, every seal verified; nothing is executed and nothing written.

    A side that was never run is left out; so is, where ``checkpoints`` are given by path, one of other content. Raises
    ArtifactError where the folder itself is unusable.
    """
    store = Store(out)
    folder = read_folder(store)
    contents = {path: CheckpointDigest(**item) for path, item in folder.checkpoints.items()} | dict(checkpoints or {})
    batch = load_frozen(store.tokens)
    sides: dict[str, SideRun] = {}
    for config in (*side_configs(plan), *baseline_configs(plan)):
        content = contents.get(config.checkpoint.path)
        if batch is None or content is None:
            if folder.last is not None and folder.last.sampling is not None:
                sides[config.digest()] = SideRun(config=config, failure=folder.last.sampling)
            continue
        side = side_id(config, batch.digest(), content)
        if (found := newest(store, side)) is not None:
            sides[config.digest()] = side_run(store, config, side, found)
    last = folder.last
    return RunReport(
        identity=folder.binding,
        tokens=batch,
        sides=sides,
        engines=Engines(**last.engines) if last else Engines(distinct=0, constructed=0, reused_from_disk=0),
        wall_s=last.wall_s if last else 0.0,
        engine_s=last.engine_s if last else 0.0,
    )
