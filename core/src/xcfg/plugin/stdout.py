"""Standard output belongs to the command line: whatever a plugin prints goes to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send Python's and the process's standard output to standard error, children of the process included."""
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
