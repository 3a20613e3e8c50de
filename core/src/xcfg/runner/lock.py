"""One execution a folder: a file lock that the kernel frees when its holder dies."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from xcfg.errors import InvalidInput, XcfgError
from xcfg.model.codec import load_json
from xcfg.runner.durable import make_folders, write_json


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the folder; a thread that holds it may hold it again.

    Raises InvalidInput naming process and host of another holder.
    """
    make_folders(root)
    lock = FileLock(root.absolute() / ".lock", is_singleton=True)
    holder = root / ".lock-holder.json"
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InvalidInput(
            f"another run is writing here: {_describe(holder)}",
            where=str(root),
            hint="wait for it to end, or choose another --out",
        ) from error
    outermost = lock.lock_counter == 1
    try:
        if outermost:
            write_json(holder, {"pid": os.getpid(), "host": socket.gethostname()})
        yield
    finally:
        if outermost:
            holder.unlink(missing_ok=True)
        lock.release()


def _describe(holder: Path) -> str:
    try:
        found = load_json(holder.read_bytes(), where=str(holder))
        return f"process {found['pid']} on {found['host']}"
    except (OSError, KeyError, TypeError, XcfgError):
        return "a process that has not left its number yet"
