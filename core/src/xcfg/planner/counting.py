"""How many cases axes make, known before any is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xcfg.errors import InvalidInput
from xcfg.model.experiment import Mode
from xcfg.model.json import Json
from xcfg.planner.factors import Factor
from xcfg.planner.select import Filter, accepted

MAX_CASES = 256
"""More cases than this are refused unless asked for: a product grows faster than one thinks."""


def count(mode: Mode, factors: Sequence[Factor], filters: Sequence[Filter], baseline: Mapping[str, Json]) -> int:
    """The cases that ``factors`` make and ``filters`` leave, the unchanged one among them where they do.

    A lower bound for ``pairwise``, whose rows are known only when they are made.
    """
    if not factors:
        return 0
    if mode is Mode.ZIP:
        return min(len(factor.levels) for factor in factors)
    if mode is Mode.PAIRWISE:
        return math.prod(sorted((len(factor.levels) for factor in factors), reverse=True)[:2])
    if mode is Mode.PRODUCT:
        return math.prod(len(factor.levels) for factor in factors)
    return _changing_at_most(1 if mode is Mode.ONE_AT_A_TIME else 2, factors, filters, baseline)


def _changing_at_most(
    most: int, factors: Sequence[Factor], filters: Sequence[Filter], baseline: Mapping[str, Json]
) -> int:
    """Coefficients of the product over the factors of (unchanged + changes * x), up to the power ``most``."""
    ways = [1] + [0] * most
    for factor in factors:
        kept = int(accepted(filters, {name: baseline.get(name) for name in factor.knobs}))
        changes = len(factor.changes)
        ways = [kept * ways[power] + (changes * ways[power - 1] if power else 0) for power in range(most + 1)]
    return sum(ways)


def too_many(number: int, max_cases: int, mode: Mode, *, at_least: bool = False) -> InvalidInput:
    """The error for a plan of ``number`` cases."""
    ways = ["--max-cases to allow them", "--filter or fewer values on the axes"]
    ways += {
        Mode.PRODUCT: ["--mode pairwise", "--mode one_at_a_time"],
        Mode.TWO_AT_A_TIME: ["--mode pairwise", "--mode one_at_a_time"],
        Mode.PAIRWISE: ["--mode one_at_a_time"],
    }.get(mode, [])
    said = f"at least {number}" if at_least else str(number)
    return InvalidInput(f"{said} cases, more than the {max_cases} allowed", where="axes", hint=", or ".join(ways))
