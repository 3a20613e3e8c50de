"""``python -m xcfg.runner.guard --fd N -- COMMAND...``: runs a command and leaves nothing of it behind.

The tree ends when the command ends, when the pipe ``N`` closes (the coordinator died, however it died), or when the
guard is told to stop. The guard adopts orphans, so a descendant that started a session of its own is found too.
Exits with the command's code, or 128 plus the signal that ended it.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time

import psutil

from xcfg.runner.subreaper import adopt_orphans, die_with_parent

STOPPED = 128 + signal.SIGTERM
GRACE_S = 3.0
"""How long processes may tidy up after SIGTERM before they are killed."""
_TICK_S = 0.05
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    """Run the guard with ``--fd N -- COMMAND...``; returns its exit code."""
    split = arguments.index("--")
    pipe = int(arguments[arguments.index("--fd") + 1])
    adopt_orphans()
    wake = _wake_on_signals()
    command = subprocess.Popen(arguments[split + 1 :], preexec_fn=die_with_parent, start_new_session=True)
    code = _wait(command.pid, pipe, wake)
    left = end_tree(GRACE_S)
    if left and code is not None:
        print(f"guard: ended {left} processes that outlived the command", file=sys.stderr, flush=True)
    return STOPPED if code is None else code


def _wake_on_signals() -> int:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (*_STOPPING, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reading


def _wait(pid: int, pipe: int, wake: int) -> int | None:
    """The command's exit code, or None when the guard has to stop it."""
    while True:
        ready, _, _ = select.select([pipe, wake], [], [])
        if pipe in ready and not os.read(pipe, 1):
            return None
        if wake in ready and any(number in _STOPPING for number in os.read(wake, 64)):
            return None
        ended = reap()
        if pid in ended:
            return ended[pid]


def reap() -> dict[int, int]:
    """Exit codes of the children that have ended, adopted ones included."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = _code(status)


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def end_tree(grace: float) -> int:
    """End every descendant, with SIGTERM and after ``grace`` seconds with SIGKILL; returns how many there were.

    Returns only when none is left: a descendant may start another while it is being ended.
    """
    seen: set[int] = set()
    killing = time.monotonic() + grace
    while True:
        reap()
        living = psutil.Process().children(recursive=True)
        if not living:
            return len(seen)
        kill = time.monotonic() >= killing
        for process in living:
            if kill or process.pid not in seen:
                _send(process, signal.SIGKILL if kill else signal.SIGTERM)
            seen.add(process.pid)
        time.sleep(_TICK_S)


def _send(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return  # it ended by itself


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
