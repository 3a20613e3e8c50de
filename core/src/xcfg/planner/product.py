"""Every combination of the values of all axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from xcfg.planner.factors import Factor, Level, joined

_TAIL = 1024
"""Combinations of the last axes that are put together once for all, at most."""


def product(factors: Sequence[Factor]) -> Iterator[Level]:
    """What each case changes, one after the other, the last axis varying fastest; without axes there is none."""
    if not factors:
        return
    levels = [factor.levels for factor in factors]
    split = next(start for start in range(len(levels) + 1) if math.prod(map(len, levels[start:])) <= _TAIL)
    tails = [joined(tail) for tail in itertools.product(*levels[split:])]
    for parts in itertools.product(*levels[:split]):
        head = joined(parts)
        for tail in tails:
            yield {**head, **tail}
