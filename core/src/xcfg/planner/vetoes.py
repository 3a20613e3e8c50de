"""Covering arrays clear of rows that a plugin vetoes, though nobody says beforehand which those are.

What the vetoed rows have in common is found by changing them level by level, and forbidden from then on. A pair that is
lost that way is tried again in rows of its own: in all there are or, in a large space, in some.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence

from xcfg.planner.pairs import missing_pairs
from xcfg.planner.pairwise import covering_rows
from xcfg.planner.space import Combination, Part, Row, Space

_SEED = 21
_ROUNDS = 32
_ALL = 1024
_TRIES = 24
"""Rows tried for a pair that no row so far holds without a veto: all where there are few, else some."""


def rows_that_run(
    sizes: Sequence[int], forbidden: Sequence[Combination], given: Sequence[Part], vetoed: Callable[[Row], bool]
) -> list[Row]:
    """As :func:`xcfg.planner.pairwise.covering_rows`, without the rows for which ``vetoed`` is true.

    Where every row tried for a pair is vetoed, one of those is among the rows, at the end: it can say why.
    """
    space = Space.of(sizes, forbidden)
    rows = covering_rows(space, given)
    if len(sizes) < 2 or not any(map(vetoed, rows)):
        return rows
    known: list[Combination] = list(forbidden)
    for _ in range(_ROUNDS):
        causes = [cause for row in rows if vetoed(row) and (cause := _cause(row, sizes, vetoed)) not in ({}, *known)]
        if not causes:
            break
        known += causes
        rows = covering_rows(Space.of(sizes, known), given)
    return _with_lost_pairs([row for row in rows if not vetoed(row)], space, given, vetoed)


def _cause(row: Row, sizes: Sequence[int], vetoed: Callable[[Row], bool]) -> dict[int, list[int]]:
    """The levels of a vetoed row that the veto seems to rest on; empty where it rests on none of them.

    A factor counts if one of its other levels lifts the veto, the factors before it being changed where they do not.
    """
    found: dict[int, list[int]] = {}
    for factor, size in enumerate(sizes):
        others = [(*row[:factor], level, *row[factor + 1 :]) for level in range(size) if level != row[factor]]
        if others and all(map(vetoed, others)):
            row = others[0]
        elif others:
            found[factor] = [row[factor]]
    return found


def _with_lost_pairs(rows: list[Row], space: Space, given: Sequence[Part], vetoed: Callable[[Row], bool]) -> list[Row]:
    """``rows`` with one more for each pair that they lack: a row that runs or, at the end, one that does not."""
    chance = random.Random(_SEED)
    hopeless: list[Row] = []
    for pair in missing_pairs(space, [*given, *(dict(enumerate(row)) for row in rows)]):
        if any(all(row[factor] == level for factor, level in pair.items()) for row in (*rows, *hopeless)):
            continue
        tried = _rows_with(pair, space, chance)
        running = next((row for row in tried if not vetoed(row)), None)
        if running is None:
            hopeless.append(tried[0])
        else:
            rows.append(running)
    return [*rows, *hopeless]


def _rows_with(pair: Part, space: Space, chance: random.Random) -> list[Row]:
    """All allowed rows with a pair where they are few, some of them where they are many."""
    choices = [[pair[factor]] if factor in pair else range(size) for factor, size in enumerate(space.sizes)]
    if math.prod(map(len, choices)) <= _ALL:
        rows = itertools.product(*choices)
        return [row for row in rows if space.rules.allows(space.bits(dict(enumerate(row))))]
    return [space.any_row(pair, chance) for _ in range(_TRIES)]
