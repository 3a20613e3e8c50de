"""A table written as netCDF-4: fields of cases over the axes of the cube, or fields of tokens one after the other."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from xcfg.cube.export import Grid, Table
from xcfg.cube.grid import Values
from xcfg.errors import EnvironmentFault, InvalidInput
from xcfg.model.json import Json

if TYPE_CHECKING:
    import h5netcdf

SCHEMA: Final = "xcfg.cube.netcdf/1"
MOST_CELLS: Final = 10_000_000
"""Cells of a grid up to which it is written: netCDF has no sparse arrays."""

_NO_INTEGER: Final = -(2**63)
_FLAGS: Final = {"flag_values": np.array([-1, 0, 1], dtype=np.int8), "flag_meanings": "unknown no yes"}
_ROW: Final = "row"


def write_netcdf(table: Table, stream: BinaryIO) -> int:
    """Fields of cases as variables over the axes that the rows have values of; a table without cells over ``row``.

    Where a cell is none of the rows a number is the variable's ``_FillValue``, a text empty and a bool -1. Returns the
    number of rows. Raises EnvironmentFault without h5netcdf and InvalidInput on a grid of too many cells.
    """
    try:
        import h5netcdf
    except ImportError as error:
        message = "a netCDF file needs h5netcdf, which is not installed"
        raise EnvironmentFault(message, hint='python -m pip install "xcfg[netcdf]"') from error
    if table.grid is not None:
        _check_size(table.grid)
    with h5netcdf.File(stream, "w") as file:
        file.attrs.update(
            {name: value if isinstance(value, str) else json.dumps(value) for name, value in table.attributes.items()}
        )
        file.attrs["schema"] = SCHEMA
        return _write_rows(file, table) if table.grid is None else _write_grid(file, table, table.grid)


def _check_size(grid: Grid) -> None:
    shape = [len(axis.values) for axis in grid.axes]
    if math.prod(shape) > MOST_CELLS:
        told = f"{len(grid.cells)} cases span {math.prod(shape)} cells ({' x '.join(map(str, shape))})"
        raise InvalidInput(
            f"{told}; netCDF stores each",
            hint="choose fewer cases with --where, or write Parquet; the cube itself is sparse",
        )


def _write_grid(file: h5netcdf.File, table: Table, grid: Grid) -> int:
    for axis in grid.axes:
        file.dimensions[axis.name] = len(axis.values)
        kind = "string" if axis.dtype == "str" else axis.dtype
        attributes = {"dtype": "bool"} if kind == "bool" else {}  # as xarray writes a coordinate of truth values
        _create(file, axis.name, (axis.name,), kind, attributes, np.array(axis.labels(), dtype=_memory(kind)))
    dims, shape = tuple(axis.name for axis in grid.axes), tuple(len(axis.values) for axis in grid.axes)
    full = len(grid.cells) == math.prod(shape)
    for block in table.blocks:
        for name, kind in table.columns.items():
            if name in dims:
                continue
            absent = _absent(kind, whole=full and name in table.whole)
            values = np.full(shape, _blank(kind, absent), dtype=_memory(kind))
            found = _stored(block[name], kind, absent)
            values[tuple(grid.cells.T)] = found if dims else found[0]
            _create(file, name, dims, kind, _attributes(kind), values, absent)
    return len(grid.cells)


def _write_rows(file: h5netcdf.File, table: Table) -> int:
    file.dimensions[_ROW] = None
    absent = {name: _absent(kind, whole=name in table.whole) for name, kind in table.columns.items()}
    for name, kind in table.columns.items():
        _create(file, name, (_ROW,), kind, _attributes(kind), None, absent[name])
    count = 0
    for block in table.blocks:
        start, count = count, count + len(next(iter(block.values())))
        file.resize_dimension(_ROW, count)
        for name, kind in table.columns.items():
            file.variables[name][start:count] = _stored(block[name], kind, absent[name])
    return count


def _create(
    file: h5netcdf.File,
    name: str,
    dims: tuple[str, ...],
    kind: str,
    attributes: Mapping[str, Any],
    values: Values | None,
    absent: Json = None,
) -> None:
    import h5py

    dtype = h5py.string_dtype() if kind in ("string", "json") else np.dtype(_memory(kind))
    packed = {"compression": "gzip", "compression_opts": 1} if dims and (values is None or values.size) else {}
    variable = file.create_variable(name, dims, dtype=dtype, data=values, fillvalue=absent, **packed)
    variable.attrs.update(attributes)


def _attributes(kind: str) -> Mapping[str, Any]:
    return _FLAGS if kind == "bool" else {}


def _absent(kind: str, *, whole: bool) -> Json:
    """The ``_FillValue`` of a variable; none where nothing is absent, or where the type has a value for it."""
    if kind in ("float32", "float64"):
        return math.nan
    return _NO_INTEGER if kind == "int64" and not whole else None


def _blank(kind: str, absent: Json) -> Json:
    return {"bool": -1, "string": "", "json": ""}.get(kind, 0 if absent is None else absent)


def _memory(kind: str) -> Any:
    return {"bool": np.int8, "string": object, "json": object}.get(kind, kind)


def _stored(values: Sequence[Json], kind: str, absent: Json) -> Values:
    blank = _blank(kind, absent)
    if kind == "json":
        values = [None if value is None else json.dumps(value) for value in values]
    return np.array([blank if value is None else value for value in values], dtype=_memory(kind))
