"""Standard output belongs to the command line: whatever a plugin prints goes to standard error."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stdout
from functools import cache


class _Guard:
    """One for the process, entered for every call of a plugin: tens of thousands of times in a large plan."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._redirection = ExitStack()

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self._depth:
            try:
                self._redirection.enter_context(_redirected())
            except BaseException:
                self._lock.release()
                raise
        self._depth += 1

    def __exit__(self, *raised: object) -> None:
        self._depth -= 1
        try:
            if not self._depth:
                self._redirection.close()
        finally:
            self._lock.release()


_GUARD = _Guard()


def stdout_to_stderr() -> AbstractContextManager[None]:
    """Send Python's and the process's standard output to standard error, children of the process included.

    One thread at a time: two that took and gave back the descriptor crosswise would leave it pointing astray. Inside
    another such context of the same thread there is nothing left to do.
    """
    return _GUARD


@contextmanager
def _redirected() -> Iterator[None]:
    _flush()
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
        try:
            _flush()
        finally:
            os.dup2(saved, 1)
            os.close(saved)


def _flush() -> None:
    """Write what is still held back, Python's own (``sys.__stdout__`` goes past a redirection) and that of C.

    What stays in a buffer is written where the descriptor points later.
    """
    for stream in (sys.stdout, sys.__stdout__, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    _c_library().fflush(None)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
