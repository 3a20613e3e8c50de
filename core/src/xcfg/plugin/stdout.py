"""Standard output belongs to the command line: whatever a plugin prints goes to standard error."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

_LOCK = threading.RLock()
_held = False
"""Whether the thread that has the lock is redirecting already."""


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send Python's and the process's standard output to standard error, children of the process included.

    One thread at a time: two that took and gave back the descriptor crosswise would leave it pointing astray. Inside
    another such context of the same thread there is nothing left to do.
    """
    global _held
    with _LOCK:
        if _held:
            yield
            return
        _held = True
        try:
            with _redirected():
                yield
        finally:
            _held = False


@contextmanager
def _redirected() -> Iterator[None]:
    sys.stdout.flush()
    try:
        saved = os.dup(1)
    except OSError:  # there is no standard output to protect
        with redirect_stdout(sys.stderr):
            yield
        return
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 1)
        os.close(saved)
