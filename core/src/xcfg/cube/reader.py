"""Reading a cube with its labels, without xarray."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from xcfg.cube.grid import blocks
from xcfg.cube.schema import STATUS_NAMES, TOKEN_ARRAYS, TOKEN_FIELDS
from xcfg.cube.staging import locate
from xcfg.cube.store import Array, Values, read
from xcfg.cube.stored import Stored, open_store, open_stored, reading
from xcfg.errors import ArtifactError
from xcfg.model.json import Json
from xcfg.model.outcome import PairedTokens

if TYPE_CHECKING:
    from zarr.abc.store import Store

_DENSE = 4
"""Cells of the cube for each case up to which all of it is read."""


@define(kw_only=True, eq=False)
class Cube:
    """An open cube. Arrays are read on first use; every damaged chunk raises ArtifactError."""

    stored: Stored
    _loaded: dict[tuple[str, tuple[int, ...]], Values] = field(init=False, factory=dict)

    @property
    def attributes(self) -> Mapping[str, Json]:
        """What the writer's caller gave: identity, contract, plugin versions."""
        return self.stored.attributes

    @property
    def axes(self) -> dict[str, tuple[Json, ...]]:
        """The values of every axis in coordinate order, with their exact JSON types."""
        return {axis.name: axis.values for axis in self.stored.geometry.axes}

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metric names in stored order."""
        return self.stored.geometry.metrics

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of all planned cases, run or not, in the cube's order."""
        return self.stored.cases

    def coordinates(self, case: str) -> dict[str, Json]:
        """The case's value on every axis."""
        cell = self.stored.column("case_cell")[self._position(case)].tolist()
        return {axis.name: axis.values[index] for axis, index in zip(self.stored.geometry.axes, cell, strict=True)}

    def statuses(self) -> dict[str, str]:
        """Status of every planned case; ``not_run`` where its cell is empty."""
        found = self.gather("status")
        names = {code: self.status_name(code) for code in np.unique(found).tolist()}
        return dict(zip(self.cases, map(names.__getitem__, found.tolist()), strict=True))

    def values(self, case: str) -> dict[str, float]:
        """The metrics of a case that are defined (not NaN)."""
        row = self.gather("metrics")[self._position(case)]
        return {name: float(value) for name, value in zip(self.metrics, row, strict=True) if value == value}

    def gather(self, name: str, further: tuple[int, ...] = ()) -> Values:
        """The values of a cell array for each of ``cases``: (cases, further dimensions of the array).

        ``further`` fixes an index of the dimensions after the axes.
        """
        if (name, further) not in self._loaded:
            self._loaded[name, further] = self._gathered(self.stored.array(name), further)
        return self._loaded[name, further]

    def _gathered(self, array: Array, further: tuple[int, ...]) -> Values:
        geometry, cells = self.stored.geometry, self.stored.column("case_cell")
        extents = array.shape[len(geometry.shape) + len(further) :]
        rest = (*(slice(index, index + 1) for index in further), *(slice(0, size) for size in extents))
        if math.prod(geometry.shape) <= _DENSE * len(cells):  # one request for all chunks is cheaper than one for each
            whole = tuple(slice(0, size) for size in geometry.shape)
            values: Values = read(array, (*whole, *rest))[tuple(cells.T)].reshape(len(cells), *extents)
            return values
        found = np.empty((len(cells), *extents), dtype=array.dtype)
        for block in blocks(cells, geometry.shape, geometry.chunk):
            found[block.items] = read(array, (*block.region, *rest))[block.inside].reshape(len(block.items), *extents)
        return found

    def record(self, case: str) -> dict[str, Json]:
        """The case's evidence (:func:`xcfg.cube.record.record`); empty where it was not run."""
        position = self._position(case)
        return self._parse(str(read(self.stored.array("record"), (slice(position, position + 1),))[0]))

    def records(self) -> list[dict[str, Json]]:
        """The evidence of each of ``cases``."""
        return [self._parse(str(text)) for text in read(self.stored.array("record"))]

    def ranks(self, case: str) -> dict[tuple[int, int], tuple[int, dict[str, float]]]:
        """Active tokens and defined metrics of each compared (rollout rank, training rank)."""
        cell = self.stored.column("case_cell")[self._position(case)].tolist()
        found = {}
        for pair in self.record(case).get("per_rank", []):
            at = (pair["rollout_rank"], pair["train_rank"])
            where = tuple(slice(index, index + 1) for index in (*cell, *at))
            count = read(self.stored.array("rank_active_tokens"), where)
            row = read(self.stored.array("rank_metrics"), (*where, slice(0, len(self.metrics)))).reshape(-1)
            metrics = {name: float(value) for name, value in zip(self.metrics, row, strict=True) if value == value}
            found[at] = (int(count.item()), metrics)
        return found

    def tokens(self, case: str) -> PairedTokens | None:
        """The case's per-token values; None where it has none."""
        position = self._position(case)
        start, count = (int(self.stored.column(name)[position]) for name in ("token_start", "token_count"))
        if not count:
            return None
        span = (slice(start, start + count),)
        arrays = {TOKEN_FIELDS[spec.name]: read(self.stored.array(spec.name), span) for spec in TOKEN_ARRAYS}
        return PairedTokens.of_tokens(sequence_ids=self.stored.sequence_ids(position), **arrays)

    def _position(self, case: str) -> int:
        return self.stored.index[case]

    def _parse(self, text: str) -> dict[str, Json]:
        with reading(self.stored.where):
            found: dict[str, Json] = json.loads(text) if text else {}
            return found

    def status_name(self, code: int) -> str:
        """The status of a stored number. Raises ArtifactError on one that the schema does not have."""
        if code not in STATUS_NAMES:
            raise ArtifactError(f"status {code} is not of this schema", where=self.stored.where)
        return STATUS_NAMES[code]


def open_cube(path: Path) -> Cube:
    """Open the cube at ``path``, or the former one where a commit was killed while taking its place.

    Raises ArtifactError where it is missing, damaged or of another schema. ``KeyError`` is what methods raise for a
    case id that the cube does not have.
    """
    return Cube(stored=open_stored(locate(path)))


def open_remote(store: Store, where: str) -> Cube:
    """Open the cube in a zarr store of another kind than a folder; ``where`` is its address. Raises ArtifactError."""
    return Cube(stored=open_store(store, where))
