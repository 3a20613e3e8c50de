"""Several requests to a store at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

AT_ONCE = 8

T = TypeVar("T")
R = TypeVar("R")


def several(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Some requests at a time; the first that fails ends what has not begun."""
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        waiting = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in waiting]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
