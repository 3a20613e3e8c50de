"""Covering arrays of strength two: few rows in which every two values of two factors meet.

Grown greedily (:mod:`xcfg.planner.covering_greedy`), then shrunk (:mod:`xcfg.planner.covering_search`). Deterministic:
chance is drawn from a fixed seed, and effort is counted in moves, never in time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, overload

from xcfg.errors import XcfgError
from xcfg.planner.coverage import Coverage
from xcfg.planner.covering_greedy import greedy_rows
from xcfg.planner.covering_search import fewer_rows
from xcfg.planner.forbidden import bits
from xcfg.planner.pairs import open_pairs
from xcfg.planner.space import Part, Row, Space

_SEED = 20


@overload
def covering_array(
    domains: Mapping[str, Sequence[Any]],
    *,
    forbidden: Iterable[Mapping[str, Collection[Any]]] = (),
    given: Iterable[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]: ...


@overload
def covering_array(
    domains: Sequence[Sequence[Any]],
    *,
    forbidden: Iterable[Mapping[int, Collection[Any]]] = (),
    given: Iterable[Mapping[int, Any]] = (),
) -> list[tuple[Any, ...]]: ...


def covering_array(
    domains: Any, *, forbidden: Iterable[Mapping[Any, Collection[Any]]] = (), given: Iterable[Mapping[Any, Any]] = ()
) -> list[Any]:
    """Rows in which every two values of two factors meet at least once, where a row may hold both.

    ``domains`` are the factors' values, by name or by position; rows are dicts or tuples accordingly, and the order of
    a mapping does not matter. ``forbidden`` are combinations, factor to values: no row has one of the values of every
    factor named. ``given`` are rows, or parts of rows, that exist already: their pairs need no other row. Without a
    second factor each value has a row. Raises ValueError on a factor without values, or a value it does not have.
    """
    named = isinstance(domains, Mapping)
    keys = sorted(domains) if named else list(range(len(domains)))
    values = [list(domains[key]) for key in keys]
    place = {key: index for index, key in enumerate(keys)}
    space = Space.of(
        [len(items) for items in values],
        [
            {place[key]: [values[place[key]].index(value) for value in wanted] for key, wanted in combination.items()}
            for combination in forbidden
        ],
    )
    parts = [{place[key]: values[place[key]].index(value) for key, value in row.items()} for row in given]
    rows = [[items[level] for items, level in zip(values, row, strict=True)] for row in covering_rows(space, parts)]
    return [{key: row[place[key]] for key in domains} for row in rows] if named else [tuple(row) for row in rows]


def covering_rows(space: Space, given: Sequence[Part] = ()) -> list[Row]:
    """The rows of a covering array over the levels of ``space``, sorted; ``given`` as in :func:`covering_array`."""
    if len(space.sizes) < 2:
        return _singles(space, given)
    required = open_pairs(space, given)
    chance = random.Random(_SEED)
    coverage = Coverage(space.factor, required, greedy_rows(required, space.rules, chance))
    found = fewer_rows(coverage, space.rules, _least(required, space), chance)
    rows = sorted(space.row(sum(1 << level for level in row)) for row in found)
    _verify(space, required, rows)
    return rows


def _singles(space: Space, given: Sequence[Part]) -> list[Row]:
    met = {level for part in given for level in part.values()}
    sizes = space.sizes or (0,)
    return [(level,) for level in range(sizes[0]) if level not in met and space.rules.allows(1 << level)]


def _least(required: Sequence[int], space: Space) -> int:
    """A bound from below: a row covers one pair of two factors, so the two with most pairs need that many rows."""
    return max(
        sum((required[bit] & right).bit_count() for bit in bits(left))
        for left, right in itertools.combinations(space.rules.domains, 2)
    )


def _verify(space: Space, required: Sequence[int], rows: Sequence[Row]) -> None:
    """Raise an internal error unless the rows, counted anew, cover every required pair and are allowed."""
    placed = [[start + level for start, level in zip(space.starts, row, strict=True)] for row in rows]
    met = {pair for row in placed for pair in itertools.combinations(row, 2)}
    wanted = [(left, right) for left, mask in enumerate(required) for right in bits(mask) if left < right]
    lost = [pair for pair in wanted if pair not in met]
    broken = [row for row in rows if not space.rules.allows(space.bits(dict(enumerate(row))))]
    if lost or broken:
        raise XcfgError(f"a covering array misses {len(lost)} pairs and breaks {len(broken)} rules", where="planner")
