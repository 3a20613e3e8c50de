"""Rows of a cube that satisfy a condition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xcfg.cube.expression import parse
from xcfg.cube.fields import default_selection, fields
from xcfg.cube.reader import Cube, open_cube
from xcfg.cube.schema import STATUS_NAMES
from xcfg.errors import InvalidInput
from xcfg.model.codec import unknown
from xcfg.model.json import Json


def query(path: Path, where: str = "", select: Sequence[str] = ()) -> list[dict[str, Json]]:
    """The selected fields of every planned case for which ``where`` holds, in the cube's order.

    Fields: ``case_id``, ``name``, ``status`` (``not_run`` included), ``reason``, ``dtype``, ``threshold``,
    ``active_tokens``, ``within_baseline_row``, every axis and metric, and ``requested.``, ``materialized.`` and
    ``observed.`` before an axis (:mod:`xcfg.cube.fields`). Without a selection: all but provenance and reason.
    ``where`` is a condition of :mod:`xcfg.cube.expression`. A number that is not finite is None in a row.

    Raises InvalidInput on a faulty condition or an unknown field, ArtifactError as :func:`open_cube`.
    """
    return rows(open_cube(path), where, select)


def rows(cube: Cube, where: str = "", select: Sequence[str] = ()) -> list[dict[str, Json]]:
    """The same of an open cube."""
    known = fields(cube)
    condition = parse(where, known.keys(), {"status": tuple(STATUS_NAMES.values())})
    selected = tuple(select) or default_selection(cube)
    for name in selected:
        if name not in known:
            raise InvalidInput(unknown("field", name, sorted(known)), where="select")
    columns = {name: known[name]() for name in {*selected, *condition.names}}
    cases = np.flatnonzero(condition.holds(columns, len(cube.cases)))
    shown = [[_finite(value) for value in columns[name].at(cases)] for name in selected]
    return [dict(zip(selected, row, strict=True)) for row in zip(*shown, strict=True)]


def _finite(value: Json) -> Json:
    return None if isinstance(value, float) and not math.isfinite(value) else value
