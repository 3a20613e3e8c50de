"""The values that one case puts into the cell arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from xcfg.cube.axis import value_text
from xcfg.cube.grid import blocks
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
    wanted = [(item, layout.cells[layout.index[outcome.case.id]]) for item, outcome in enumerate(outcomes)]
    for spec in CELL_ARRAYS:
        array = arrays[spec.name]
        for block in blocks(wanted, layout.shape, layout.chunk):
            members = [(outcomes[item], inside) for item, inside in block.members]
            extra = array.shape[len(layout.shape) :]
            if spec.name.startswith("rank_"):
                _write_ranks(array, spec, layout, block.region, members)
                continue
            full = (*block.region, *(slice(0, size) for size in extra))
            values = read(array, full)
            for outcome, inside in members:
                values[inside] = _cell(outcome, spec, layout, extra)
            put(array, full, values)


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
    region: tuple[slice, ...],
    members: Sequence[tuple[CaseOutcome, tuple[int, ...]]],
) -> None:
    """One chunk per pair of ranks: only pairs that exist in the block, or did, are looked at."""
    lead = len(layout.shape)
    pairs = [
        {(pair.rollout_rank, pair.train_rank): pair for pair in outcome.comparison.per_rank} for outcome, _ in members
    ]
    extents = array.shape[lead : lead + 2]
    rest = tuple(slice(0, size) for size in array.shape[lead + 2 :])
    for rollout_rank, train_rank in np.ndindex(*extents):
        full = (*region, slice(rollout_rank, rollout_rank + 1), slice(train_rank, train_rank + 1), *rest)
        values = read(array, full)
        for (_, inside), known in zip(members, pairs, strict=True):
            pair = known.get((rollout_rank, train_rank))
            if pair is None:
                values[inside] = spec.fill
            elif spec.name == "rank_metrics":
                values[inside] = _metrics(pair.metrics, layout.metrics)
            else:
                values[inside] = pair.active_tokens
        put(array, full, values)
