"""Kills the process just before its N-th change to a folder, or writes down how many changes there were.

``CRASH_FOLDER`` and ``CRASH_AT`` or ``CRASH_COUNT`` (a file) come from the environment, which a side's processes do not
inherit. A change is an opening for writing, a rename, a removal, or a folder that is made.
"""

import atexit
import os
import signal
import sys
from pathlib import Path

FOLDER = os.environ.get("CRASH_FOLDER")
AT = int(os.environ.get("CRASH_AT", "0"))
_changes = 0


def _count(event, arguments):
    global _changes
    if event == "open":
        path, _, flags = arguments
        if not (flags & (os.O_WRONLY | os.O_RDWR)):
            return
    elif event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir"):
        path = arguments[0]
    else:
        return
    if isinstance(path, str | os.PathLike) and str(Path(path).absolute()).startswith(FOLDER):
        _changes += 1
        if _changes == AT:
            os.kill(os.getpid(), signal.SIGKILL)


if FOLDER:
    sys.addaudithook(_count)
    if counted := os.environ.get("CRASH_COUNT"):
        atexit.register(lambda: Path(counted).write_text(str(_changes)))
