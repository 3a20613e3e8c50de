"""A wall clock that is set back a minute each time it is read, in every process that has this folder on its path."""

import time

_start = time.time()
_calls = 0


def _now() -> float:
    global _calls
    _calls += 1
    return _start - 60.0 * _calls


time.time = _now
time.time_ns = lambda: int(_now() * 1e9)
