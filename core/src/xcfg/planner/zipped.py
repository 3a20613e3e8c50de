"""The first values of all axes together, then the second values, and so on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xcfg.errors import InvalidInput
from xcfg.planner.factors import Factor, Level, joined


def zipped(factors: Sequence[Factor]) -> Iterator[Level]:
    """What each case changes. Raises InvalidInput where an axis has another number of values than the first."""
    for factor in factors:
        expected, found = len(factors[0].levels), len(factor.levels)
        if found != expected:
            raise InvalidInput(
                f"{factor.name} has {found} values and {factors[0].name} has {expected}",
                where="mode zip",
                hint="give every axis as many values, or take another mode",
            )
    for levels in zip(*(factor.levels for factor in factors), strict=True):
        yield joined(levels)
