"""Writing the cube: ``commit`` adds outcomes to it, ``rebuild`` makes it again from all of them.

Both give the same bytes in the result group for the same plan, outcomes and attributes, whatever the order and the
number of commits. One writer at a time: the caller holds the lock of the output folder.

Consolidated metadata is not written: it would go stale at the next resize, and it would put the shapes of ``measured``
into the root group. Open the cube with ``xarray.open_zarr(path, consolidated=False)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import zarr

from xcfg.cube.axis import Axis
from xcfg.cube.cells import write_cells
from xcfg.cube.geometry import Geometry
from xcfg.cube.layout import Layout, LayoutChanged, fresh_layout
from xcfg.cube.measured import write_measured
from xcfg.cube.schema import (
    CASE_ARRAYS,
    CELL_ARRAYS,
    FLAT_CHUNK,
    MEASURED,
    PROVENANCE,
    SCHEMA,
    SEQUENCE_ARRAY,
    SIDES,
    TOKEN_ARRAYS,
    ArraySpec,
)
from xcfg.cube.staging import recover, staged
from xcfg.cube.store import Array, filled, numpy_dtype, read, require, sorted_json, sync
from xcfg.cube.stored import Stored, open_stored
from xcfg.cube.table import Rows, no_rows, sequence_table, token_starts, write_records, write_table
from xcfg.cube.tokens import Spans, write_tokens
from xcfg.errors import ArtifactError
from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome
from xcfg.model.plan import Plan


def commit(path: Path, plan: Plan, outcomes: Sequence[CaseOutcome], attributes: Mapping[str, Json]) -> None:
    """Create the cube at ``path`` or add ``outcomes`` to it; a case that is there already is replaced.

    New axis values and cases are appended and change no stored chunk of a cell array that they do not share.
    ``attributes`` (identity, contract, plugin versions) become those of the root group, except the mapping
    ``measured`` (host, clocks), which becomes that of the subgroup. Killed at any moment, it leaves the former cube
    or the new one.

    Raises :class:`xcfg.cube.layout.LayoutChanged` where the plan needs another shape, ArtifactError where the cube at
    ``path`` is unreadable, EnvironmentFault on a full disk (the former cube stays), ValueError on outcomes that repeat
    a case or are not of the plan.
    """
    recover(path)
    former = open_stored(path) if path.exists() else None
    layout = fresh_layout(plan) if former is None else former.layout().extended(plan)
    ordered = _ordered(layout, outcomes)
    with staged(path, copy=former is not None) as staging:
        _write(staging, layout, former, ordered, attributes)


def rebuild(
    path: Path,
    plan: Plan,
    outcomes: Sequence[CaseOutcome],
    attributes: Mapping[str, Json],
    *,
    like: Path | None = None,
    fresh: bool = False,
) -> None:
    """Make the cube again from ``outcomes`` alone and put it in the place of the one at ``path``.

    The order of values and cases and the chunk shape are those of the former cube (of the one at ``like`` where that
    is given) where it is readable and holds nothing that the plan does not; otherwise, and with ``fresh``, they come
    from the plan. Errors as for :func:`commit`.
    """
    recover(path)
    layout = (None if fresh else _kept_layout(like or path, plan)) or fresh_layout(plan)
    ordered = _ordered(layout, outcomes)
    with staged(path, copy=False) as staging:
        _write(staging, layout, None, ordered, attributes)


def _kept_layout(path: Path, plan: Plan) -> Layout | None:
    try:
        former = open_stored(path).layout()
        return former.extended(plan) if former.covered_by(plan) else None
    except (ArtifactError, LayoutChanged):
        return None  # a damaged cube and another shape are what a rebuild is for


def _ordered(layout: Layout, outcomes: Sequence[CaseOutcome]) -> list[CaseOutcome]:
    by_case = {outcome.case.id: outcome for outcome in outcomes}
    if len(by_case) != len(outcomes):
        raise ValueError("two outcomes of one case in a commit")
    unknown = sorted(set(by_case) - set(layout.index))
    if unknown:
        raise ValueError(f"outcomes of cases that are not in the plan: {', '.join(unknown)}")
    return sorted(outcomes, key=lambda outcome: layout.index[outcome.case.id])


def _write(
    folder: Path,
    layout: Layout,
    former: Stored | None,
    outcomes: Sequence[CaseOutcome],
    attributes: Mapping[str, Json],
) -> None:
    root = zarr.open_group(folder, mode="a", zarr_format=3)
    no_spans = np.zeros(0, dtype=np.int64)
    root.attrs.put(_root_attributes(layout, attributes))
    _write_coordinates(root, layout)
    new = {layout.index[outcome.case.id]: outcome for outcome in outcomes}
    held = {} if former is None else former.table()
    old = no_rows() if former is None else Rows.stored(held, read(former.array(SEQUENCE_ARRAY.name)).tolist())
    rows = old.padded(len(layout.cases)).updated(new)
    counts = rows.columns["token_count"]
    starts = token_starts(counts, layout.extensions)
    ids, sequence_starts = sequence_table(rows, layout.extensions)
    arrays = _require_arrays(root, layout, rows, int((starts + counts).max(initial=0)), len(ids))
    write_cells(arrays, layout, outcomes)
    write_records(arrays["record"], layout, outcomes)
    write_table(arrays, layout, rows, {"token_start": starts, "sequence_start": sequence_starts}, held)
    sync(arrays[SEQUENCE_ARRAY.name], np.array(ids, dtype=numpy_dtype("str")))
    write_tokens(
        arrays,
        Spans(starts=starts, counts=counts),
        {} if former is None else {spec.name: former.array(spec.name) for spec in TOKEN_ARRAYS},
        Spans(starts=held.get("token_start", no_spans), counts=held.get("token_count", no_spans)),
        {index: outcome.tokens for index, outcome in new.items()},
    )
    write_measured(root, layout, outcomes, attributes.get(MEASURED, {}))


def _root_attributes(layout: Geometry, attributes: Mapping[str, Json]) -> dict[str, Json]:
    geometry = {
        "axes": layout.dimensions,
        "coordinates": {axis.name: axis.dtype for axis in layout.axes},
        "chunk": layout.chunk,
        "case_chunk": layout.case_chunk,
        "record_chunk": layout.record_chunk,
        "axis_chunk": layout.axis_chunk,
        "metric_chunk": layout.metric_chunk,
        "extensions": layout.extensions,
    }
    given = {key: value for key, value in attributes.items() if key != MEASURED}
    found: dict[str, Json] = sorted_json({**given, "schema": SCHEMA, "layout": geometry})
    return found


def _write_coordinates(root: zarr.Group, layout: Layout) -> None:
    for axis, chunk in zip(layout.axes, layout.coordinate_chunks, strict=True):
        _coordinate(root, axis, chunk, {"values": axis.values})
    _coordinate(root, Axis(name="metric", dtype="str", values=layout.metrics), layout.metric_chunk, {})
    _coordinate(root, Axis(name="side", dtype="str", values=SIDES), len(SIDES), {})
    _coordinate(root, Axis(name="axis", dtype="str", values=layout.dimensions), max(1, len(layout.axes)), {})


def _coordinate(root: zarr.Group, axis: Axis, chunk: int, attributes: Mapping[str, Json]) -> None:
    fill: dict[str, Json] = {"bool": False, "int64": 0, "float64": 0.0, "str": ""}
    spec = ArraySpec(axis.name, (), axis.dtype, fill[axis.dtype], f"coordinate of the dimension {axis.name}")
    shape = (len(axis.values),)
    array = require(root, spec, dims=(axis.name,), shape=shape, chunk=(chunk,), attributes=attributes)
    values = filled(shape, spec)
    if values.size:
        values[...] = axis.labels()
    sync(array, values)


def _require_arrays(root: zarr.Group, layout: Layout, rows: Rows, tokens: int, sequences: int) -> dict[str, Array]:
    sizes = {
        "metric": (len(layout.metrics), layout.metric_chunk),
        "side": (len(SIDES), len(SIDES)),
        "axis": (len(layout.axes), max(1, len(layout.axes))),
        "rollout_rank": (rows.extent("rollout_ranks"), 1),
        "train_rank": (rows.extent("train_ranks"), 1),
        "case": (len(layout.cases), layout.case_chunk),
        "token": (tokens, FLAT_CHUNK),
        "sequence": (sequences, FLAT_CHUNK),
        **dict(zip(layout.dimensions, zip(layout.shape, layout.chunk, strict=True), strict=True)),
    }
    own = {(name, "axis"): layout.axis_chunk for name in PROVENANCE} | {("record", "case"): layout.record_chunk}
    families = (
        (layout.dimensions, CELL_ARRAYS),
        (("case",), CASE_ARRAYS),
        (("token",), TOKEN_ARRAYS),
        (("sequence",), (SEQUENCE_ARRAY,)),
    )
    arrays = {}
    for lead, specs in families:
        for spec in specs:
            dims = (*lead, *spec.dims)
            shape = [sizes[dim][0] for dim in dims]
            chunk = [own.get((spec.name, dim), sizes[dim][1]) for dim in dims]
            arrays[spec.name] = require(root, spec, dims=dims, shape=shape, chunk=chunk)
    return arrays
