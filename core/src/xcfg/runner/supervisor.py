"""A guarded process tree with its own logs, watched until it ends, runs out of time or is stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from xcfg.plugin.executor import Ended, Ending
from xcfg.runner.environment import LAUNCH
from xcfg.runner.guard import GRACE_S

_TICK_S = 0.05
_GUARD_S = GRACE_S + 10.0


def supervise(
    run: Sequence[str], environment: Mapping[str, str], logs: Path, over: Callable[[], bool], stop: threading.Event
) -> Ended:
    """Run a command under the guard until nothing of it is left.

    ``over`` is asked all the while; where it says True the time is up.
    """
    started = time.monotonic()
    with _guarded(run, environment, logs) as guard:
        ending = Ending.EXITED
        while guard.poll() is None:
            late = over()
            if stop.is_set() or late:
                ending = Ending.STOPPED if stop.is_set() else Ending.TIMEOUT
                break
            _pause(guard)
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
