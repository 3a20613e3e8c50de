"""The disk under a comparison's scratch folder: what it says when it is full."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xcfg.errors import EnvironmentFault

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No space, over a quota, and a file that is as large as this file system or process may have one."""


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Raise EnvironmentFault where a write to ``folder`` found no room; SQLite's own errors are all of its disk."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _fault(folder, str(error)) from error
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise _fault(folder, str(error.strerror)) from error


def _fault(folder: Path, reason: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"the comparison cannot be written to disk: {reason}",
        where=str(folder),
        hint="free some space, or name another folder in TMPDIR",
    )
