"""Peak resident memory of a rank and of the processes its engine started."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import psutil


def peak_rss() -> dict[str, int]:
    """Bytes: ``process`` for this one, ``children`` summed over the peaks of all living descendants (if any)."""
    found = {"process": _own_peak()}
    children = [_peak(child) for child in psutil.Process().children(recursive=True)]
    if children:
        found["children"] = sum(children)
    return found


def _own_peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _peak(process: psutil.Process) -> int:
    """``VmHWM`` where the kernel tells it, else the resident size now; 0 for a process that has just ended."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        pass
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
