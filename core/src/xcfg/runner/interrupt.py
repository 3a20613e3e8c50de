"""SIGTERM and SIGHUP end an execution like Ctrl-C does: children gone first, finished side runs kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_LIKE_CTRL_C = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt on these signals where nobody handles them yet; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in _LIKE_CTRL_C if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
