"""Constraints that say nothing, and pairs of them that cannot both hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from xcfg.model.json import Json
from xcfg.planner.assignment import same
from xcfg.planner.problem import Problem


def check_constraints(data: dict[str, Json]) -> list[Problem]:
    """Problems of the constraints, whose values are in their normal form. Other shapes are for the shape check."""
    rows = data.get("constraints")
    numbered = [(index, row) for index, row in enumerate(rows if isinstance(rows, list) else []) if _readable(row)]
    found = [
        Problem(path=("constraints", index), message="the constraint requires nothing", hint="give it `require`")
        for index, row in numbered
        if not row.get("require")
    ]
    for (first, one), (second, other) in itertools.combinations(numbered, 2):
        found += _contradiction(first, one, second, other)
    return found


def _readable(row: Json) -> bool:
    parts = [row.get(part, {}) for part in ("when", "require")] if isinstance(row, dict) else [None]
    return all(isinstance(part, dict) and all(isinstance(item, list) for item in part.values()) for part in parts)


def _contradiction(first: int, one: Mapping[str, Json], second: int, other: Mapping[str, Json]) -> Iterator[Problem]:
    """Under the same condition two constraints must leave every knob they both require something of a value."""
    if not _equal(one.get("when", {}), other.get("when", {})):
        return
    for knob, allowed in one.get("require", {}).items():
        wanted = other.get("require", {}).get(knob)
        if wanted is not None and not any(same(left, right) for left in allowed for right in wanted):
            said = f"constraints {first} and {second} contradict each other: no value of {knob} satisfies both"
            hint = "give them different conditions under `when`, or a value in common"
            yield Problem(path=("constraints", second, "require", knob), message=said, hint=hint, at_key=True)


def _equal(left: Mapping[str, Json], right: Mapping[str, Json]) -> bool:
    """Whether two conditions are one, whatever the order of their values."""
    return left.keys() == right.keys() and all(
        len(values) == len(right[knob]) and all(any(same(a, b) for b in right[knob]) for a in values)
        for knob, values in left.items()
    )
