"""A command that runs in a scratch folder of this machine, with its keeper."""

from __future__ import annotations

import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
from attrs import evolve

from xcfg.model.codec import load_json, structure
from xcfg.plugin.executor import JOB, Job

_KILLED = 137
"""Exit code of a keeper that ended without a word."""


class Running:
    """The command of one machine's part of a launch; all it holds is in ``scratch``."""

    def __init__(self, folder: str, inputs: Mapping[str, bytes]) -> None:
        """Lay out the inputs, by their paths relative to the output folder; the launch's is ``folder``."""
        self.scratch = Path(tempfile.mkdtemp(prefix="xcfg-"))
        self.root = self.scratch / "out"
        self.folder = self.root / folder
        self._code: int | None = None
        try:
            for name, data in inputs.items():
                path = self.root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            found = structure(load_json((self.folder / JOB).read_bytes(), where=JOB), Job)
            self.job = evolve(found, root=str(self.root))
        except BaseException:
            self.discard()
            raise

    def begin(self, command: list[str], log: str) -> None:
        """Start the command; its own words, which are few, go to the file ``log`` of the launch's logs."""
        path = self.folder / "logs" / log
        path.parent.mkdir(exist_ok=True)
        keeper = [sys.executable, "-m", "xcfg_ray.keeper", str(self.scratch), str(path), "--", *command]
        started = subprocess.Popen(keeper, cwd=self.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        started.wait()  # the keeper itself is no child of this process
        assert started.stdin is not None and started.stdout is not None
        self._stdin, self._stdout = started.stdin, started.stdout
        self.pid = int(self._stdout.readline())

    def over(self) -> int | None:
        """The command's exit code once it has one."""
        if self._code is None and select.select([self._stdout], [], [], 0)[0]:
            self._code = int(self._stdout.readline() or _KILLED)
        return self._code

    def end(self) -> None:
        """Tell the command to end, without waiting for it."""
        with suppress(psutil.NoSuchProcess):
            for command in psutil.Process(self.pid).children():
                command.terminate()

    def finish(self, seconds: float) -> bool:
        """End the command and remove its folder; False where that was not over in time."""
        self._stdin.close()
        until = time.monotonic() + seconds
        while select.select([self._stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            if not self._stdout.read(64):
                return True
        return False

    def discard(self) -> None:
        """Remove the folder of a command that was not started."""
        shutil.rmtree(self.scratch, ignore_errors=True)
