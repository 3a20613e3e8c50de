"""The page on the result cube names every array, attribute and status of its schema, as they are stored."""

from __future__ import annotations

import math
import re

import pytest

from xcfg.cube.measured import ATTEMPT, COST
from xcfg.cube.schema import CASE_ARRAYS, CELL_ARRAYS, SCHEMA, SEQUENCE_ARRAY, STATUS_NAMES, TOKEN_ARRAYS

from .snippets import ROOT

PAGE = (ROOT / "docs/reference/cube.md").read_text()
FAMILIES = {
    "Cells": CELL_ARRAYS,
    "Cases": CASE_ARRAYS,
    "Tokens": (*TOKEN_ARRAYS, SEQUENCE_ARRAY),
    "The group `measured`": (ATTEMPT, COST),
}


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return found[2:]


@pytest.mark.parametrize("title", FAMILIES)
def test_arrays(title: str) -> None:
    fills = {"": "empty"}
    wanted = {}
    for spec in FAMILIES[title]:
        number = isinstance(spec.fill, float) and math.isnan(spec.fill)
        fill = "NaN" if number else fills.get(spec.fill, str(spec.fill))
        dims = spec.dims if title != "The group `measured`" else ("case", "side")
        wanted[f"`{spec.name}`"] = [", ".join(dims), {"str": "string"}.get(spec.dtype, spec.dtype), fill]
    assert {row[0]: row[1:4] for row in rows(section(title))} == wanted
    assert all(row[4] for row in rows(section(title)))


def test_statuses() -> None:
    told = re.findall(r"(\d+)\s`(\w+)`", section("Cells"))
    assert {int(number): name for number, name in told} == STATUS_NAMES


def test_attributes_and_version() -> None:
    from xcfg.cube.geometry import Geometry
    from xcfg.cube.writer import _root_attributes

    geometry = Geometry(
        axes=(),
        chunk=(),
        coordinate_chunks=(),
        case_chunk=1,
        record_chunk=1,
        axis_chunk=1,
        metrics=(),
        metric_chunk=1,
    )
    told = section("Attributes of the group")
    found = _root_attributes(geometry, {})
    names = {name for row in rows(told) for name in re.findall(r"`([\w.]+)`", row[0])}
    assert set(found) <= names
    assert all(f"`{name}`" in told for name in found["layout"])
    assert f"`{SCHEMA}`" in told
