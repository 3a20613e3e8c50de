"""Reading a cube with its labels, without xarray."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import Factory, define, field

from xcfg.cube.grid import blocks
from xcfg.cube.schema import STATUS_NAMES, TOKEN_ARRAYS, TOKEN_FIELDS
from xcfg.cube.staging import locate
from xcfg.cube.store import read
from xcfg.cube.stored import Stored, open_store, open_stored, reading
from xcfg.errors import ArtifactError
from xcfg.model.json import Json
from xcfg.model.outcome import PairedTokens

if TYPE_CHECKING:
    from zarr.abc.store import Store


@define(kw_only=True, eq=False)
class Cube:
    """An open cube. Arrays are read on first use; every damaged chunk raises ArtifactError."""

    stored: Stored
    _loaded: dict[str, list[Any]] = field(init=False, default=Factory(dict))

    @property
    def attributes(self) -> Mapping[str, Json]:
        """What the writer's caller gave: identity, contract, plugin versions."""
        return self.stored.attributes

    @property
    def axes(self) -> dict[str, tuple[Json, ...]]:
        """The values of every axis in coordinate order, with their exact JSON types."""
        return {axis.name: axis.values for axis in self.stored.layout.axes}

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metric names in stored order."""
        return self.stored.layout.metrics

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of all planned cases, run or not, in the cube's order."""
        return self.stored.layout.cases

    def coordinates(self, case: str) -> dict[str, Json]:
        """The case's value on every axis."""
        layout = self.stored.layout
        cell = layout.cells[self._position(case)]
        return {axis.name: axis.values[index] for axis, index in zip(layout.axes, cell, strict=True)}

    def statuses(self) -> dict[str, str]:
        """Status of every planned case; ``not_run`` where its cell is empty."""
        return {case: self._status(int(code)) for case, code in zip(self.cases, self.gather("status"), strict=True)}

    def values(self, case: str) -> dict[str, float]:
        """The metrics of a case that are defined (not NaN)."""
        row = self.gather("metrics")[self._position(case)]
        return {name: float(value) for name, value in zip(self.metrics, row, strict=True) if value == value}

    def gather(self, name: str) -> list[Any]:
        """The values of a cell array for each of ``cases``: scalars, or arrays over its further dimensions."""
        if name not in self._loaded:
            layout, array = self.stored.layout, self.stored.arrays[name]
            found: list[Any] = [None] * len(layout.cells)
            rest = tuple(slice(0, size) for size in array.shape[len(layout.shape) :])
            for block in blocks(enumerate(layout.cells), layout.shape, layout.chunk):
                values = read(array, (*block.region, *rest))
                for item, inside in block.members:
                    found[item] = values[inside]
            self._loaded[name] = found
        return self._loaded[name]

    def record(self, case: str) -> dict[str, Json]:
        """The case's evidence (:func:`xcfg.cube.record.record`); empty where it was not run."""
        position = self._position(case)
        return self._parse(str(read(self.stored.arrays["record"], (slice(position, position + 1),))[0]))

    def records(self) -> list[dict[str, Json]]:
        """The evidence of each of ``cases``."""
        return [self._parse(str(text)) for text in read(self.stored.arrays["record"])]

    def ranks(self, case: str) -> dict[tuple[int, int], tuple[int, dict[str, float]]]:
        """Active tokens and defined metrics of each compared (rollout rank, training rank)."""
        layout, position = self.stored.layout, self._position(case)
        found = {}
        for pair in self.record(case).get("per_rank", []):
            at = (pair["rollout_rank"], pair["train_rank"])
            where = tuple(slice(index, index + 1) for index in (*layout.cells[position], *at))
            count = read(self.stored.arrays["rank_active_tokens"], where)
            row = read(self.stored.arrays["rank_metrics"], (*where, slice(0, len(self.metrics)))).reshape(-1)
            metrics = {name: float(value) for name, value in zip(self.metrics, row, strict=True) if value == value}
            found[at] = (int(count.item()), metrics)
        return found

    def tokens(self, case: str) -> PairedTokens | None:
        """The case's per-token values; None where it has none."""
        position = self._position(case)
        row, start = self.stored.rows[position], self.stored.token_starts[position]
        if not row.tokens:
            return None
        span = (slice(start, start + row.tokens),)
        arrays = {TOKEN_FIELDS[spec.name]: read(self.stored.arrays[spec.name], span) for spec in TOKEN_ARRAYS}
        return PairedTokens.of_tokens(sequence_ids=row.sequences, **arrays)

    def _position(self, case: str) -> int:
        return self.stored.layout.index[case]

    def _parse(self, text: str) -> dict[str, Json]:
        with reading(self.stored.where):
            found: dict[str, Json] = json.loads(text) if text else {}
            return found

    def _status(self, code: int) -> str:
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
