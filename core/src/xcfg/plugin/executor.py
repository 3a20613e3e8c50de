"""What an executor is: it runs the processes of one launch somewhere and brings their files to the output folder.

Everything a launch needs lies below the output folder: its own folder with ``spec.json`` and ``job.json``, and the
frozen tokens. An executor on another machine copies ``Job.inputs`` into an empty folder there, keeping their relative
paths, runs :meth:`Job.argv` in it, and carries every file that appears below ``Job.folder`` back. Files are written in
one step under their final names, records after the tensors they name: carried over in the order in which they were
changed, a record never arrives before its tensors. Logs, which end in ``.log``, only grow.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from attrs import field, frozen

from xcfg.errors import ArtifactError, InvalidInput
from xcfg.model.codec import load_json, structure
from xcfg.model.json import freeze, tupled
from xcfg.model.scorer import Launch
from xcfg.plugin.installed import Asked

SCHEMA = "xcfg.job/1"
JOB = "job.json"
ENDED = "ended.json"


class Ending(StrEnum):
    """How a launch came to its end. ``lost``: the machine it ran on went away."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    LOST = "lost"


@frozen(kw_only=True)
class Ended:
    """``code`` is the command's exit code, 128 plus the number where a signal ended it."""

    ending: Ending
    code: int
    seconds: float


@frozen(kw_only=True)
class Limits:
    """Seconds a launch may take: to its open engine, for each thing it then scores or samples, and to close."""

    start: float
    score: float
    stop: float


@frozen(kw_only=True)
class Job:
    """One launch to run. ``root`` is the output folder, ``folder`` the launch's and ``inputs`` what it reads, below it.

    ``environment`` holds the variables the launch sets, beside those a process inherits from its machine. ``python`` is
    the interpreter of the ranks, empty for the one that runs :meth:`argv`. ``code`` is what the results are said to be
    made with: it has to be the same where they are.
    """

    schema: str = SCHEMA
    root: str = ""
    folder: str
    inputs: tuple[str, ...] = field(converter=tupled)
    launch: Launch
    ranks: int
    environment: Mapping[str, str] = field(factory=dict, converter=freeze)
    limits: Limits
    python: str = ""
    code: Asked = field(factory=Asked)

    @property
    def place(self) -> Path:
        """The launch's folder."""
        return Path(self.root) / self.folder

    def argv(
        self,
        *,
        python: str = sys.executable,
        nodes: int = 1,
        node: int = 0,
        rendezvous: str = "",
        address: str = "",
        tied: bool = False,
    ) -> list[str]:
        """The command that runs the launch's ranks of one machine, to be started in the folder that holds the inputs.

        An elastic launch over several ``nodes`` has ``ranks / nodes`` ranks on each; ``rendezvous`` is ``host:port`` of
        a free port on node 0, ``address`` the node's own. A ``tied`` command ends with everything below it when its
        standard input closes.
        """
        words = [python, "-m", "xcfg.runner.node", self.folder]
        if nodes > 1:
            words += ["--nodes", str(nodes), "--node", str(node), "--rendezvous", rendezvous, "--address", address]
        return [*words, "--tied"] if tied else words

    def ended(self, node: int = 0) -> Ended | None:
        """How the command of a node ended, as it wrote it down; None where it did not come to that."""
        path = self.place / ended_name(node)
        if not path.is_file():
            return None
        try:
            return structure(load_json(path.read_bytes(), where=str(path)), Ended)
        except InvalidInput as error:
            raise ArtifactError(faults=error.faults) from error


def ended_name(node: int) -> str:
    """File in which the command of a node writes how it ended."""
    return ENDED if node == 0 else f"node-{node}-{ENDED}"


@runtime_checkable
class Executor(Protocol):
    """Runs launches. Made with its options, name to text; raises InvalidInput for one it does not know or cannot read.

    Several threads may call :meth:`run` at once.
    """

    def slots(self) -> int | None:
        """How many launches it takes at once; None lets the memory and cores of the coordinator's machine decide."""

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Run a launch until nothing of it is left.

        ``watch`` is to be called all the while, whenever files may have arrived, and once after the last of them. Where
        ``stop`` is set, the launch is ended at once. Raises EnvironmentFault where it cannot be run at all.
        """

    def close(self) -> None:
        """Let go of what the executor holds."""
