"""The processes that an engine starts, and how they are ended."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil


def children() -> set[psutil.Process]:
    """Every process below this one."""
    return set(psutil.Process().children(recursive=True))


def alive(pid: int) -> bool:
    """Whether a process of this id runs; one that only waits to be reaped does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def end(processes: Iterable[psutil.Process], grace: float = 5.0) -> None:
    """Terminate them, and kill what is left after ``grace`` seconds."""
    ours = {process for process in processes if not _is_resource_tracker(process)}
    for process in ours:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(ours, timeout=grace)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=grace)


def _is_resource_tracker(process: psutil.Process) -> bool:
    """Python's own helper: it ends with this process and must outlive the workers to free their shared memory."""
    with suppress(psutil.Error):
        return any("resource_tracker" in word for word in process.cmdline())
    return False
