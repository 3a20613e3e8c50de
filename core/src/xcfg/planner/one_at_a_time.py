"""Each value of each axis by itself, everything else as in the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xcfg.planner.factors import Factor, Level


def one_at_a_time(factors: Sequence[Factor]) -> Iterator[Level]:
    """What each case changes, in the order of the file."""
    for factor in factors:
        yield from factor.changes
