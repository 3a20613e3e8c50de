"""How a launch's processes ended, kept beside their logs."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from xcfg.errors import ArtifactError, InvalidInput
from xcfg.model.codec import load_json, structure
from xcfg.model.result import Finding
from xcfg.plugin.executor import Ended, Ending
from xcfg.runner.durable import write_json

NAME = "exit.json"


@frozen(kw_only=True)
class Exit:
    """``complete``: every side run of the launch had been sealed or had failed by itself before the end."""

    ending: Ending
    code: int
    seconds: float
    complete: bool


def write_exit(launch: Path, ended: Ended, *, complete: bool) -> None:
    """Record the end of a launch."""
    write_json(launch / NAME, Exit(ending=ended.ending, code=ended.code, seconds=ended.seconds, complete=complete))


def exit_findings(launch: Path) -> tuple[Finding, ...]:
    """A finding where the processes went wrong after their results were sealed: the results stand.

    A machine that goes away says nothing about the processes.
    """
    path = launch / NAME
    if not path.is_file():  # the coordinator died before it could tell
        return ()
    try:
        found = structure(load_json(path.read_bytes(), where=str(path)), Exit)
    except InvalidInput as error:
        raise ArtifactError(faults=error.faults) from error
    if not found.complete or found.ending is Ending.LOST or (found.ending is Ending.EXITED and found.code == 0):
        return ()
    return (
        Finding(
            source_class="execution",
            subclass="process-exit",
            rule="exit after the seal",
            evidence={"ending": found.ending.value, "code": found.code, "launch": launch.name},
            advice="the numbers were sealed before; see the launch's logs if it happens often",
        ),
    )
