"""DeepSpeed's sums over the CPUs of one machine, and the shared memory they leave behind.

Its operator makes a segment a rank as soon as ``LOCAL_SIZE`` says that all ranks are on this machine, unlinks none when
the process ends, and finds those of the other ranks by a name that only user, address and port tell apart.
"""

from __future__ import annotations

import os
from pathlib import Path

SEGMENTS = Path("/dev/shm")


def variables(*, sums: bool) -> dict[str, str]:
    """What DeepSpeed is to read of this rank's place on its machine; ``LOCAL_SIZE`` only where it sums itself."""
    place = {"LOCAL_RANK": os.environ.get("LOCAL_RANK", "0")}
    return {**place, "LOCAL_SIZE": os.environ.get("LOCAL_WORLD_SIZE", "1")} if sums else place


def all_local() -> bool:
    """Whether the launcher started every rank on this machine."""
    return os.environ.get("LOCAL_WORLD_SIZE", "1") == os.environ.get("WORLD_SIZE", "1")


def forget_segments(rank: int) -> None:
    """Unlink this rank's segment, once every rank has mapped it: the mappings stay, and nothing outlives the ranks."""
    address, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    name = f"deepspeed_allreduce_buffer_{os.getuid()}_{address}_{port}_{rank}"
    (SEGMENTS / name).unlink(missing_ok=True)
