"""A small executor for tests: a folder of its own is the other machine, and it may go away."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from xcfg.errors import InvalidInput
from xcfg.model.executor import ExecutorDescriptor
from xcfg.plugin.executor import Ended, Ending, Job

AWAY = ExecutorDescriptor(id="away", summary="in an empty folder", target="xcfg.testing.away:AwayExecutor")
_TICK_S = 0.05


class AwayExecutor:
    """Copies the inputs of a launch into an empty folder, runs its command there, and carries its files back."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """It has no options."""
        if options:
            raise InvalidInput(f"the executor away has no option {', '.join(sorted(options))}", where="--executor")
        self._running: list[psutil.Process] = []

    def slots(self) -> int | None:
        """Two machines."""
        return 2

    def run(self, job: Job, watch: Callable[[], object], stop: threading.Event) -> Ended:
        """Run the launch there; closing its standard input ends it."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="away-") as folder:
            there = Path(folder)
            _copy_inputs(job, there)
            command = subprocess.Popen(job.argv(tied=True), cwd=there, stdin=subprocess.PIPE)
            self._running.append(psutil.Process(command.pid))
            while command.poll() is None:
                _carry(there, job)
                watch()
                if stop.is_set() and command.stdin is not None:
                    command.stdin.close()
                    command.wait()
                time.sleep(_TICK_S)
            _carry(there, job, everything=True)
            watch()
        gone = Ended(ending=Ending.LOST, code=0, seconds=time.monotonic() - began)
        return job.ended() or gone

    def close(self) -> None:
        """Nothing is held."""

    def lose(self) -> None:
        """Take the machine away: every process of the launches that run there is killed at once."""
        for command in self._running:
            with suppress(psutil.NoSuchProcess):
                for process in [command, *command.children(recursive=True)]:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()


def _copy_inputs(job: Job, there: Path) -> None:
    for name in job.inputs:
        source, target = Path(job.root) / name, there / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def _carry(there: Path, job: Job, *, everything: bool = False) -> None:
    """Bring what was written before this moment, oldest first, each file in one step.

    The moment is that of a file written here: what is older than it was in place when the search began.
    """
    beat = there / ".beat"
    beat.write_bytes(b"")
    moment = beat.stat().st_mtime_ns
    found = []
    for path in (there / job.folder).rglob("*"):
        with suppress(FileNotFoundError):
            seen = path.stat()
            if path.is_file() and not path.name.startswith(".") and (everything or seen.st_mtime_ns < moment):
                found.append((seen.st_mtime_ns, path))
    for changed, path in sorted(found):
        target = Path(job.root) / path.relative_to(there)
        if target.exists() and target.stat().st_mtime_ns >= changed:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.carried")
        with suppress(FileNotFoundError):  # what has gone meanwhile is not missed
            shutil.copy2(path, partial)
            partial.replace(target)
