"""A cube as it lies on disk, opened and checked: what both the writer and the reader start from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zarr
from attrs import define, field, fields
from zarr.errors import BaseZarrError

from xcfg.cube.axis import Axis
from xcfg.cube.geometry import Geometry
from xcfg.cube.layout import Layout
from xcfg.cube.schema import CASE_ARRAYS, CELL_ARRAYS, SCHEMA, SEQUENCE_ARRAY
from xcfg.cube.store import REBUILD, Array, Values, read
from xcfg.errors import ArtifactError
from xcfg.model.json import Json

if TYPE_CHECKING:
    from zarr.abc.store import Store

_TOGETHER = 128
"""Chunks decoded in one turn; one by one, most of the time of reading goes into waiting for the threads."""

_CELL_NAMES = frozenset(spec.name for spec in CELL_ARRAYS)


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Whatever goes wrong while reading stored bytes is an :class:`ArtifactError` that names the cube."""
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, IndexError, RuntimeError, BaseZarrError) as error:
        raise ArtifactError(f"the result cube is unreadable: {error}", where=where, hint=REBUILD) from error


@define(kw_only=True, eq=False, slots=False)
class Stored:
    """A cube at ``where``: its geometry, and its arrays and columns, each read when it is asked for the first time.

    ``attributes`` are the caller's. Every damaged chunk raises ArtifactError.
    """

    where: str
    geometry: Geometry
    attributes: Mapping[str, Json]
    group: zarr.Group
    _arrays: dict[str, Array] = field(init=False, factory=dict)
    _columns: dict[str, Values] = field(init=False, factory=dict)

    def array(self, name: str) -> Array:
        """The array of this name, not loaded."""
        if name not in self._arrays:
            with reading(self.where):
                found, axes = _array(self.group, name), self.geometry.shape
                if name in _CELL_NAMES and found.shape[: len(axes)] != axes:
                    raise ValueError(f"array {name} has the shape {found.shape}, the axes {axes}")
                self._arrays[name] = found
        return self._arrays[name]

    def column(self, name: str) -> Values:
        """One column of the case table, whole; not to be changed."""
        if name not in self._columns:
            self._columns[name] = read(self.array(name))
        return self._columns[name]

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """Ids of all planned cases."""
        return tuple(self.column("case").tolist())

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each case id in ``cases``."""
        return {case: index for index, case in enumerate(self.cases)}

    def layout(self) -> Layout:
        """The geometry with its cases."""
        return Layout(
            **{item.name: getattr(self.geometry, item.name) for item in fields(Geometry)},
            cases=self.cases,
            cells=self.column("case_cell"),
            names=tuple(self.column("case_name").tolist()),
            changed=tuple(self.column("case_changed").tolist()),
        )

    def table(self) -> dict[str, Values]:
        """Every column of the case table but the evidence."""
        return {spec.name: self.column(spec.name) for spec in CASE_ARRAYS if spec.name != "record"}

    def sequence_ids(self, case: int) -> tuple[str, ...]:
        """The ids that the tokens of a case index."""
        start, count = int(self.column("sequence_start")[case]), int(self.column("sequence_count")[case])
        return tuple(read(self.array(SEQUENCE_ARRAY.name), (slice(start, start + count),)).tolist())


def open_stored(path: Path) -> Stored:
    """Read the geometry. Raises ArtifactError where there is no cube, or one of another schema."""
    if not path.is_dir():
        raise ArtifactError("there is no result cube", where=str(path), hint=REBUILD)
    return open_store(path, str(path))


def open_store(store: Path | Store, where: str) -> Stored:
    """The same of a zarr store of any kind; ``where`` names it in errors."""
    with reading(where):
        group = zarr.open_group(store, mode="r", zarr_format=3)
        found = dict(group.attrs)
        _check_schema(found.get("schema"), where)
        given = {key: value for key, value in found.items() if key not in ("schema", "layout")}
        return Stored(where=where, geometry=_geometry(group, found["layout"]), attributes=given, group=group)


def _check_schema(found: Any, where: str) -> None:
    """Raise ArtifactError on another schema, and say so where it is a later version of this one."""
    if found == SCHEMA:
        return
    family, _, version = str(found).partition("/")
    own = int(SCHEMA.partition("/")[2])
    if family == SCHEMA.partition("/")[0] and version.isdecimal() and int(version) > own:
        raise ArtifactError(
            f"the cube has version {version} of its schema ({found}), and this xcfg reads up to version {own}",
            where=where,
            hint="read it with the xcfg that wrote it, or a later one; rebuild makes it again in this version",
        )
    raise ArtifactError(f"schema {found!r} is not {SCHEMA}", where=where, hint=REBUILD)


def _array(group: zarr.Group, name: str) -> Array:
    with zarr.config.set({"codec_pipeline.batch_size": _TOGETHER}):  # told to an array when it is opened
        found = group[name]
    if not isinstance(found, zarr.Array):
        raise ValueError(f"{name} is not an array")
    return found


def _geometry(group: zarr.Group, found: Any) -> Geometry:
    axes, chunks = [], []
    for name in found["axes"]:
        coordinate = _array(group, name)
        values: Any = coordinate.attrs["values"]
        axes.append(Axis(name=name, dtype=found["coordinates"][name], values=tuple(values)))
        chunks.append(coordinate.chunks[0])
    return Geometry(
        axes=tuple(axes),
        chunk=tuple(found["chunk"]),
        coordinate_chunks=tuple(chunks),
        case_chunk=found["case_chunk"],
        # the first cubes had no chunks of their own for these two
        record_chunk=found.get("record_chunk", found["case_chunk"]),
        axis_chunk=found.get("axis_chunk", max(1, len(axes))),
        metrics=tuple(read(_array(group, "metric")).tolist()),
        metric_chunk=found["metric_chunk"],
        extensions=tuple(found["extensions"]),
    )
