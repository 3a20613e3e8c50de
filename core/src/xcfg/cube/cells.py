"""The values that one case puts into the cell arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from xcfg.cube.axis import value_text
from xcfg.cube.grid import Block, blocks
from xcfg.cube.layout import Layout
from xcfg.cube.schema import CELL_ARRAYS, SIDES, STATUS_CODES, ArraySpec
from xcfg.cube.store import Array, Values, filled, put, read
from xcfg.model.case import SideConfig
from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome, SideOutcome

_SCORER_AXES = tuple(f"{side}.scorer" for side in SIDES)


def write_cells(arrays: Mapping[str, Array], layout: Layout, outcomes: Sequence[CaseOutcome]) -> None:
    """Write the cells of ``outcomes``. Chunks that stay at the fill value are not stored, equal ones not touched.

    Raises ValueError on a metric that :data:`xcfg.model.result.METRIC_NAMES` does not list.
    """
    places = np.array([layout.index[outcome.case.id] for outcome in outcomes], dtype=np.int64)
    for block in blocks(layout.cells[places], layout.shape, layout.chunk):
        members = [outcomes[item] for item in block.items.tolist()]
        for spec in CELL_ARRAYS:
            array = arrays[spec.name]
            if spec.name.startswith("rank_"):
                _write_ranks(array, spec, layout, block, members)
                continue
            extra = array.shape[len(layout.shape) :]
            full = (*block.region, *(slice(0, size) for size in extra))
            held = read(array, full)
            values = held.copy()
            block.put(values, _column(members, spec, layout, extra))
            put(array, full, values, held)


def _column(members: Sequence[CaseOutcome], spec: ArraySpec, layout: Layout, extra: tuple[int, ...]) -> Values:
    found = filled((len(members), *extra), spec)
    for row, outcome in enumerate(members):
        found[row] = _cell(outcome, spec, layout, extra)
    return found


def _cell(outcome: CaseOutcome, spec: ArraySpec, layout: Layout, extra: tuple[int, ...]) -> object:
    comparison = outcome.comparison
    match spec.name:
        case "status":
            return STATUS_CODES[comparison.status]
        case "metrics":
            return _metrics(comparison.metrics, layout.metrics)
        case "active_tokens":
            return comparison.active_tokens
        case "threshold":
            return np.nan if comparison.threshold is None else comparison.threshold
        case "within_baseline_row":
            return -1 if comparison.within_baseline_row is None else int(comparison.within_baseline_row)
        case "case_id":
            return outcome.case.id
        case "dtype":
            return comparison.dtype
    values = filled(extra, spec)
    sides = ((outcome.case.rollout, outcome.rollout), (outcome.case.training, outcome.training))
    for row, (config, side) in enumerate(sides):
        for column, axis in enumerate(layout.dimensions):
            values[row, column] = _provenance(spec.name, axis, config, side)
    return values


def _provenance(kind: str, axis: str, config: SideConfig, side: SideOutcome) -> str:
    """JSON text of one value; empty where the side does not have it."""
    if axis in _SCORER_AXES:
        ran = side.provenance is not None
        own = axis == f"{config.role.value}.scorer"
        return value_text(config.scorer) if own and (ran or kind == "requested") else ""
    if side.provenance is not None and axis in side.provenance.knobs:
        found: Json = getattr(side.provenance.knobs[axis], kind)
        return value_text(found)
    return value_text(config.knobs[axis]) if kind == "requested" and axis in config.knobs else ""


def _metrics(found: Mapping[str, float], names: Sequence[str]) -> Values:
    unlisted = sorted(set(found) - set(names))
    if unlisted:
        raise ValueError(f"metrics {', '.join(unlisted)} are not in METRIC_NAMES")
    return np.array([found.get(name, np.nan) for name in names], dtype=np.float64)


def _write_ranks(
    array: Array,
    spec: ArraySpec,
    layout: Layout,
    block: Block,
    members: Sequence[CaseOutcome],
) -> None:
    """One chunk per pair of ranks: only pairs that exist in the block, or did, are looked at."""
    lead = len(layout.shape)
    pairs = [
        {(pair.rollout_rank, pair.train_rank): pair for pair in outcome.comparison.per_rank} for outcome in members
    ]
    extents, extra = array.shape[lead : lead + 2], array.shape[lead + 2 :]
    for rollout_rank, train_rank in np.ndindex(*extents):
        full = (
            *block.region,
            slice(rollout_rank, rollout_rank + 1),
            slice(train_rank, train_rank + 1),
            *(slice(0, size) for size in extra),
        )
        held = read(array, full)
        values = held.copy()
        column = filled((len(members), 1, 1, *extra), spec)
        for row, known in enumerate(pairs):
            pair = known.get((rollout_rank, train_rank))
            if pair is not None:
                ranked = spec.name == "rank_metrics"
                column[row] = _metrics(pair.metrics, layout.metrics) if ranked else pair.active_tokens
        block.put(values, column)
        put(array, full, values, held)
