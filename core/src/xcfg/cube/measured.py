"""The subgroup ``measured``: attempts, wall time and memory, outside the claim that a rebuild gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import zarr

from xcfg.cube.layout import Layout
from xcfg.cube.schema import MEASURED, SIDES, ArraySpec
from xcfg.cube.store import read, require, sorted_json, sync
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome

ATTEMPT = ArraySpec("attempt", (), "int64", 0, "number of the attempt the side was read from; 0 for none")
COST = ArraySpec("cost", (), "str", "", "JSON: phases (seconds, wall clock), peak_rss (bytes by rank), repeats")


def write_measured(
    root: zarr.Group, layout: Layout, outcomes: Sequence[CaseOutcome], attributes: Mapping[str, Json]
) -> None:
    """Write attempt number and cost, shape (case, side), of ``outcomes``; other cases keep theirs."""
    group = root.require_group(MEASURED)
    group.attrs.put(sorted_json(attributes))
    for spec in (ATTEMPT, COST):
        array = require(
            group,
            spec,
            dims=("case", "side"),
            shape=(len(layout.cases), len(SIDES)),
            chunk=(layout.case_chunk, len(SIDES)),
        )
        values = read(array)
        for outcome in outcomes:
            for column, side in enumerate((outcome.rollout, outcome.training)):
                cost = json.dumps(unstructure(side.measured), sort_keys=True)
                values[layout.index[outcome.case.id], column] = side.attempt if spec is ATTEMPT else cost
        sync(array, values)
