"""Which requests are submitted together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def groups(items: Sequence[T], size: int) -> Iterator[tuple[int, Sequence[T]]]:
    """(index of the first item, up to ``size`` items) in order."""
    if size < 1:
        raise ValueError(f"batch size must be at least 1, not {size}")
    for start in range(0, len(items), size):
        yield start, items[start : start + size]
