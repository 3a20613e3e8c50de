"""The executions of a search in the order in which they were made, kept in the output folder as ``search.json``."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve, field, frozen

from xcfg.model.json import tupled
from xcfg.runner.durable import write_json
from xcfg.runner.stored import read_document

NAME = "search.json"
SCHEMA = "xcfg.search-log/1"


@frozen(kw_only=True)
class Execution:
    """A case, the attempts of its two sides, the engines constructed for them and the seconds these lived."""

    case: str
    purpose: str
    rollout_attempt: int
    training_attempt: int
    constructed: int
    engine_s: float


@frozen(kw_only=True)
class Log:
    """Content of the file. Verdicts are not in it: they are made again from the attempts."""

    schema: str = SCHEMA
    executions: tuple[Execution, ...] = field(default=(), converter=tupled)

    @property
    def constructed(self) -> int:
        """Engines that all searches in the folder constructed."""
        return sum(item.constructed for item in self.executions)

    @property
    def engine_s(self) -> float:
        """Seconds that these engines lived."""
        return sum(item.engine_s for item in self.executions)


def read_log(folder: Path) -> Log:
    """The log of a folder, empty where no search was made in it. Raises ArtifactError where it is damaged."""
    path = folder / NAME
    if not path.is_file():
        return Log()
    return read_document(path, Log, SCHEMA)


def append(folder: Path, execution: Execution) -> None:
    """Add an execution to the log."""
    log = read_log(folder)
    write_json(folder / NAME, evolve(log, executions=(*log.executions, execution)))
