"""Each value of each axis by itself, then every two values of two axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from xcfg.planner.factors import Factor, Level
from xcfg.planner.one_at_a_time import one_at_a_time


def two_at_a_time(factors: Sequence[Factor]) -> Iterator[Level]:
    """What each case changes, the singles first, both in the order of the file."""
    yield from one_at_a_time(factors)
    for first, second in itertools.combinations(factors, 2):
        for left, right in itertools.product(first.changes, second.changes):
            yield {**left, **right}
