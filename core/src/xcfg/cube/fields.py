"""The names a query may use, and the column of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np

from xcfg.cube.column import Coded, Column, Numbers, coded
from xcfg.cube.reader import Cube
from xcfg.cube.schema import PROVENANCE, SIDES
from xcfg.cube.stored import reading
from xcfg.model.json import Json

Load = Callable[[], Column]


def fields(cube: Cube) -> dict[str, Load]:
    """Every name with the function that reads its column; nothing is read before it is called.

    ``observed.KNOB`` is the value of the side that has the knob; where both have it and differ, a mapping by side.
    ``observed.SIDE.KNOB`` is that of one side (``observed.training.batch.size``). NaN is null.
    """
    found: dict[str, Load] = {}
    for axis in cube.axes:
        for kind in PROVENANCE:
            for side in SIDES:
                found[f"{kind}.{side}.{axis}"] = partial(_provenance, cube, kind, axis, (side,))
    for axis in cube.axes:
        for kind in PROVENANCE:
            found[f"{kind}.{axis}"] = partial(_provenance, cube, kind, axis, SIDES)
    for index, metric in enumerate(cube.metrics):
        found[metric] = partial(_metric, cube, index)
    for place, axis in enumerate(cube.axes):
        found[axis] = partial(_axis, cube, axis, place)
    found["case_id"] = lambda: coded(cube.cases)
    found["name"] = lambda: _texts(cube.stored.column("case_name"))
    found["status"] = lambda: _status(cube)
    found["reason"] = lambda: coded([item.get("reason", "") for item in cube.records()])
    found["dtype"] = lambda: _texts(cube.gather("dtype"), absent="")
    found["active_tokens"] = lambda: Numbers(values=cube.gather("active_tokens"))
    found["threshold"] = lambda: Numbers(values=cube.gather("threshold"))
    found["within_baseline_row"] = lambda: Coded(
        values=(None, False, True), codes=cube.gather("within_baseline_row") + 1
    )
    return found


def kinds(cube: Cube) -> dict[str, str]:
    """The type of the fields that have one whatever their values are: a metric no case has is still a number."""
    return {
        **dict.fromkeys((*cube.metrics, "threshold"), "float64"),
        "active_tokens": "int64",
        "within_baseline_row": "bool",
    }


def default_selection(cube: Cube) -> tuple[str, ...]:
    """What a query shows when nothing is selected."""
    judged = ("status", "within_baseline_row", "dtype", "threshold", "active_tokens")
    return ("case_id", "name", *cube.axes, *judged, *cube.metrics)


def _axis(cube: Cube, name: str, place: int) -> Column:
    return Coded(values=cube.axes[name], codes=cube.stored.column("case_cell")[:, place])


def _metric(cube: Cube, index: int) -> Column:
    return Numbers(values=cube.gather("metrics")[:, index])


def _status(cube: Cube) -> Column:
    distinct, codes = np.unique(cube.gather("status"), return_inverse=True)
    return Coded(values=[cube.status_name(int(code)) for code in distinct], codes=codes)


def _texts(found: np.ndarray, absent: str | None = None) -> Column:
    values, codes = _distinct([found])
    return Coded(values=[None if value == absent else value for (value,) in values], codes=codes)


def _distinct(columns: list[np.ndarray]) -> tuple[list[tuple[str, ...]], np.ndarray]:
    """The distinct rows of some columns of texts, and the place of each row among them."""
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    known = {row: code for code, row in enumerate(dict.fromkeys(rows))}
    return list(known), np.fromiter(map(known.__getitem__, rows), dtype=np.int64, count=len(rows))


def _provenance(cube: Cube, kind: str, axis: str, sides: tuple[str, ...]) -> Column:
    place = list(cube.axes).index(axis)
    texts, codes = _distinct([cube.gather(kind, (SIDES.index(side), place)) for side in sides])
    return Coded(values=[_merge(cube, dict(zip(sides, row, strict=True))) for row in texts], codes=codes)


def _merge(cube: Cube, texts: dict[str, str]) -> Json:
    present = {side: text for side, text in texts.items() if text}
    if len(set(present.values())) > 1:
        return {side: _parse(cube, text) for side, text in present.items()}
    return _parse(cube, next(iter(present.values()), ""))


def _parse(cube: Cube, text: str) -> Json:
    with reading(cube.stored.where):
        return json.loads(text) if text else None
