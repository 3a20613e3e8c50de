"""One launch: a guarded process tree with its own logs, watched until it ends, runs out of time or is stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

import psutil
from attrs import frozen

from xcfg.model.scorer import Launch
from xcfg.runner.environment import LAUNCH
from xcfg.runner.guard import GRACE_S

_TICK_S = 0.05
_GUARD_S = GRACE_S + 10.0


class Ending(StrEnum):
    """How a launch came to its end."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    STOPPED = "stopped"


@frozen(kw_only=True)
class Ended:
    """``code`` is the command's exit code, 128 plus the number where a signal ended it."""

    ending: Ending
    code: int
    seconds: float


def command(spec: Path, launch: Launch, world_size: int, logs: Path) -> list[str]:
    """The command line that runs the launch described in the file ``spec``."""
    child = ["-m", "xcfg.runner.child", str(spec)]
    if launch is Launch.SINGLE:
        return [sys.executable, *child]
    elastic = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world_size)]
    return [sys.executable, *elastic, "--log-dir", str(logs), "--redirects", "3", "--max-restarts", "0", *child]


def supervise(
    run: Sequence[str],
    environment: Mapping[str, str],
    logs: Path,
    watch: Callable[[], bool],
    timeout: float,
    stop: threading.Event,
) -> Ended:
    """Run a command under the guard until nothing of it is left.

    ``watch`` is called all the while and once after the end; where it returns True a side run was finished and the
    clock of ``timeout`` seconds starts anew.
    """
    started = time.monotonic()
    with _guarded(run, environment, logs) as guard:
        deadline = started + timeout
        ending = Ending.EXITED
        while guard.poll() is None:
            if watch():
                deadline = time.monotonic() + timeout
            if stop.is_set() or time.monotonic() > deadline:
                ending = Ending.STOPPED if stop.is_set() else Ending.TIMEOUT
                break
            _pause(guard)
    watch()
    code = guard.wait()
    return Ended(ending=ending, code=code if code >= 0 else 128 - code, seconds=time.monotonic() - started)


def _pause(guard: subprocess.Popen[bytes]) -> None:
    try:
        guard.wait(timeout=_TICK_S)
    except subprocess.TimeoutExpired:
        return


@contextmanager
def _guarded(run: Sequence[str], environment: Mapping[str, str], logs: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The guard process. On leaving, it is told to end the tree by the closed pipe, and nothing of it is left."""
    reading, writing = os.pipe()
    try:
        with (logs / "stdout.log").open("wb") as out, (logs / "stderr.log").open("wb") as err:
            guard = subprocess.Popen(
                [sys.executable, "-m", "xcfg.runner.guard", "--fd", str(reading), "--", *run],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=(reading,),
                start_new_session=True,
            )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    try:
        yield guard
    finally:
        os.close(writing)
        _ensure_gone(guard, environment[LAUNCH])


def _ensure_gone(guard: subprocess.Popen[bytes], launch: str) -> None:
    """Wait for the guard; should it be dead or stuck itself, kill what carries the launch's mark."""
    try:
        code = guard.wait(timeout=_GUARD_S)
    except subprocess.TimeoutExpired:
        guard.kill()
        code = guard.wait()
    if code < 0:
        for process in _marked(launch):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _marked(launch: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(LAUNCH) == launch:
                found.append(process)
        except psutil.Error:
            continue  # it has ended, or belongs to another user
    return found
