"""Peak resident memory of a rank and of the processes its engine started."""

from __future__ import annotations

from pathlib import Path

import psutil


def peak_rss() -> dict[str, int]:
    """Bytes: ``process`` for this one, ``children`` summed over the peaks of all living descendants (if any)."""
    own = psutil.Process()
    found = {"process": _peak(own)}
    children = [_peak(child) for child in own.children(recursive=True)]
    if children:
        found["children"] = sum(children)
    return found


def _peak(process: psutil.Process) -> int:
    """``VmHWM`` where the kernel tells it, else the resident size now; 0 for a process that has just ended.

    Not ``ru_maxrss``: that one survives exec, and a small process started by a large one would count as large.
    """
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
