"""A cube as it lies on disk, opened and checked: what both the writer and the reader start from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zarr
from attrs import frozen
from zarr.errors import BaseZarrError

from xcfg.cube.axis import Axis
from xcfg.cube.layout import Layout
from xcfg.cube.schema import CASE_ARRAYS, CELL_ARRAYS, SCHEMA, SEQUENCE_ARRAY, TOKEN_ARRAYS
from xcfg.cube.store import REBUILD, Array, Values, read
from xcfg.cube.table import Row, read_rows
from xcfg.errors import ArtifactError
from xcfg.model.json import Json

if TYPE_CHECKING:
    from zarr.abc.store import Store


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Whatever goes wrong while reading stored bytes is an :class:`ArtifactError` that names the cube."""
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, IndexError, RuntimeError, BaseZarrError) as error:
        raise ArtifactError(f"the result cube is unreadable: {error}", where=where, hint=REBUILD) from error


@frozen(kw_only=True, eq=False)
class Stored:
    """Geometry, case rows and arrays (not loaded) of a cube at ``where``; ``attributes`` are the caller's."""

    where: str
    layout: Layout
    rows: tuple[Row, ...]
    token_starts: tuple[int, ...]
    arrays: Mapping[str, Array]
    attributes: Mapping[str, Json]
    group: zarr.Group


def open_stored(path: Path) -> Stored:
    """Read geometry and case table. Raises ArtifactError where there is no cube, or one of another schema."""
    if not path.is_dir():
        raise ArtifactError("there is no result cube", where=str(path), hint=REBUILD)
    return open_store(path, str(path))


def open_store(store: Path | Store, where: str) -> Stored:
    """The same of a zarr store of any kind; ``where`` names it in errors."""
    with reading(where):
        group = zarr.open_group(store, mode="r", zarr_format=3)
        found = dict(group.attrs)
        if found.get("schema") == SCHEMA:
            return _open(where, group, found)
    raise ArtifactError(f"schema {found.get('schema')!r} is not {SCHEMA}", where=where, hint=REBUILD)


def _open(where: str, group: zarr.Group, found: dict[str, Any]) -> Stored:
    names = [spec.name for spec in (*CELL_ARRAYS, *CASE_ARRAYS, *TOKEN_ARRAYS, SEQUENCE_ARRAY)]
    arrays = {name: _array(group, name) for name in names}
    table = {spec.name: read(arrays[spec.name]) for spec in CASE_ARRAYS if spec.name != "record"}
    rows = read_rows(table, [str(name) for name in read(arrays[SEQUENCE_ARRAY.name])])
    layout = _layout(group, found["layout"], table)
    for spec in CELL_ARRAYS:
        if arrays[spec.name].shape[: len(layout.shape)] != layout.shape:
            raise ValueError(f"array {spec.name} has the shape {arrays[spec.name].shape}, the axes {layout.shape}")
    return Stored(
        where=where,
        layout=layout,
        rows=tuple(rows),
        token_starts=tuple(int(start) for start in table["token_start"]),
        arrays=arrays,
        attributes={key: value for key, value in found.items() if key not in ("schema", "layout")},
        group=group,
    )


def _array(group: zarr.Group, name: str) -> Array:
    found = group[name]
    if not isinstance(found, zarr.Array):
        raise ValueError(f"{name} is not an array")
    return found


def _layout(group: zarr.Group, found: dict[str, Any], table: Mapping[str, Values]) -> Layout:
    axes, chunks = [], []
    for name in found["axes"]:
        coordinate = _array(group, name)
        values: Any = coordinate.attrs["values"]
        axes.append(Axis(name=name, dtype=found["coordinates"][name], values=tuple(values)))
        chunks.append(coordinate.chunks[0])
    return Layout(
        axes=tuple(axes),
        chunk=tuple(found["chunk"]),
        coordinate_chunks=tuple(chunks),
        case_chunk=found["case_chunk"],
        metrics=tuple(str(name) for name in read(_array(group, "metric"))),
        metric_chunk=found["metric_chunk"],
        cases=tuple(str(case) for case in table["case"]),
        cells=tuple(tuple(int(index) for index in cell) for cell in table["case_cell"]),
        names=tuple(str(name) for name in table["case_name"]),
        changed=tuple(tuple(json.loads(str(text))) for text in table["case_changed"]),
        extensions=tuple(found["extensions"]),
    )
