"""The subgroup ``measured``: attempts, wall time and memory, outside the claim that a rebuild gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import zarr

from xcfg.cube.grid import blocks
from xcfg.cube.layout import Layout
from xcfg.cube.schema import CELL_BLOCK, MEASURED, SIDES, ArraySpec
from xcfg.cube.store import put, read, require, sorted_json
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome, SideOutcome

ATTEMPT = ArraySpec("attempt", (), "int64", 0, "number of the attempt the side was read from; 0 for none")
COST = ArraySpec("cost", (), "str", "", "JSON: phases (seconds, wall clock), peak_rss (bytes by rank), repeats")


def write_measured(
    root: zarr.Group, layout: Layout, outcomes: Sequence[CaseOutcome], attributes: Mapping[str, Json]
) -> None:
    """Write attempt number and cost, shape (case, side), of ``outcomes``; other cases keep theirs."""
    group = root.require_group(MEASURED)
    group.attrs.put(sorted_json(attributes))
    places = np.array([layout.index[outcome.case.id] for outcome in outcomes], dtype=np.int64).reshape(-1, 1)
    for spec in (ATTEMPT, COST):
        array = require(
            group,
            spec,
            dims=("case", "side"),
            shape=(len(layout.cases), len(SIDES)),
            chunk=(min(layout.case_chunk, CELL_BLOCK), len(SIDES)),
        )
        for block in blocks(places, array.shape[:1], array.chunks[:1]):
            region = (*block.region, slice(0, len(SIDES)))
            held = read(array, region)
            values = held.copy()
            for item, inside in zip(block.items.tolist(), block.inside[0].tolist(), strict=True):
                sides = (outcomes[item].rollout, outcomes[item].training)
                values[inside] = [side.attempt if spec is ATTEMPT else _cost(side) for side in sides]
            put(array, region, values, held)


def _cost(side: SideOutcome) -> str:
    return json.dumps(unstructure(side.measured), sort_keys=True)
