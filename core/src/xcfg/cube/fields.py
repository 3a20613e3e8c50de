"""The names a query may use, and their value for every case."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from xcfg.cube.reader import Cube
from xcfg.cube.schema import SIDES
from xcfg.cube.stored import reading
from xcfg.model.json import Json

PROVENANCE = ("requested", "materialized", "observed")

Column = Callable[[], list[Json]]


def fields(cube: Cube) -> dict[str, Column]:
    """Every name with the function that reads its column, one JSON value a case; nothing is read before it is called.

    ``observed.KNOB`` is the value of the side that has the knob; where both have it and differ, a mapping by side.
    ``observed.SIDE.KNOB`` is that of one side (``observed.training.batch.size``). NaN becomes None.
    """
    found: dict[str, Column] = {}
    for axis in cube.axes:
        for kind in PROVENANCE:
            for side in SIDES:
                found[f"{kind}.{side}.{axis}"] = _provenance(cube, kind, axis, side)
    for axis in cube.axes:
        for kind in PROVENANCE:
            found[f"{kind}.{axis}"] = _merged(cube, kind, axis)
    for index, metric in enumerate(cube.metrics):
        found[metric] = _metric(cube, index)
    for axis in cube.axes:
        found[axis] = _axis(cube, axis)
    found["case_id"] = lambda: list(cube.cases)
    found["name"] = lambda: list(cube.stored.layout.names)
    found["status"] = lambda: list(cube.statuses().values())
    found["reason"] = lambda: [item.get("reason", "") for item in cube.records()]
    found["dtype"] = lambda: [str(value) or None for value in cube.gather("dtype")]
    found["active_tokens"] = lambda: [int(value) for value in cube.gather("active_tokens")]
    found["threshold"] = lambda: [_number(value) for value in cube.gather("threshold")]
    found["within_baseline_row"] = lambda: [
        None if value < 0 else bool(value) for value in cube.gather("within_baseline_row")
    ]
    return found


def default_selection(cube: Cube) -> tuple[str, ...]:
    """What a query shows when nothing is selected."""
    judged = ("status", "within_baseline_row", "dtype", "threshold", "active_tokens")
    return ("case_id", "name", *cube.axes, *judged, *cube.metrics)


def _axis(cube: Cube, name: str) -> Column:
    values = cube.axes[name]
    place = list(cube.axes).index(name)
    return lambda: [values[cell[place]] for cell in cube.stored.layout.cells]


def _metric(cube: Cube, index: int) -> Column:
    return lambda: [_number(row[index]) for row in cube.gather("metrics")]


def _provenance(cube: Cube, kind: str, axis: str, side: str) -> Column:
    row, column = SIDES.index(side), list(cube.axes).index(axis)
    return lambda: [_parse(cube, str(values[row, column])) for values in cube.gather(kind)]


def _merged(cube: Cube, kind: str, axis: str) -> Column:
    column = list(cube.axes).index(axis)

    def load() -> list[Json]:
        return [_merge(cube, [str(text) for text in values[:, column]]) for values in cube.gather(kind)]

    return load


def _merge(cube: Cube, texts: Sequence[str]) -> Json:
    present = {side: text for side, text in zip(SIDES, texts, strict=True) if text}
    if len(set(present.values())) > 1:
        return {side: _parse(cube, text) for side, text in present.items()}
    return _parse(cube, next(iter(present.values()), ""))


def _parse(cube: Cube, text: str) -> Json:
    with reading(cube.stored.where):
        return json.loads(text) if text else None


def _number(value: Any) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number
