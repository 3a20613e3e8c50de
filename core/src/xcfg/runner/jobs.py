"""How many engines may run at once where the user does not say."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

CORES_AN_ENGINE = 4
"""An engine runs two ranks or workers and their helpers; two engines on fewer cores only slow each other."""
_BASE_BYTES = 3 << 30
_COPIES = 4
"""Memory of an engine: its libraries and caches, and the weights while they are loaded, cast and sharded."""


def default_jobs(checkpoint_bytes: int) -> int:
    """Engines at once on this machine: by its cores and free memory; one where they would share a device."""
    if _shared_device():
        return 1
    need = _BASE_BYTES + _COPIES * checkpoint_bytes
    return max(1, min(_cores() // CORES_AN_ENGINE, int(psutil.virtual_memory().available) // need))


def _shared_device() -> bool:
    return Path("/proc/driver/nvidia").exists()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def folder_bytes(folders: list[Path]) -> int:
    """Size of the largest of the checkpoint folders."""
    return max(
        (sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) for folder in folders), default=0
    )
