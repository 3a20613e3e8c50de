"""The content of a result cube in Parquet, and as variables of xarray over plain zarr, for :mod:`cube`."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import xarray
import zarr
from pyarrow import parquet

from xcfg.cube.reader import open_cube
from xcfg.cube.schema import CASE_ARRAYS, CELL_ARRAYS, TOKEN_ARRAYS

CELLS = ("status", "metrics", "threshold", "case_id", "observed")
ZSTD = {"compression": "zstd", "compression_level": 1}
"""That of the cube's chunks."""


def _columns(name: str, values: np.ndarray) -> dict[str, pa.Array]:
    """One column for each entry of the further dimensions."""
    if values.ndim > 1:
        pieces = ((at, values[(slice(None), *at)]) for at in np.ndindex(*values.shape[1:]))
        return {f"{name}.{'.'.join(map(str, at))}": _columns("", piece)[""] for at, piece in pieces}
    return {name: pa.array(values.tolist() if values.dtype.kind == "T" else values)}


def write_parquet(cube: Path, target: Path, batch: int) -> float:
    """Axes and what a query filters by, a row group for ``batch`` cases; returns the seconds of writing."""
    opened = open_cube(cube)
    found = {"case_id": pa.array(opened.cases), "status": pa.array(list(opened.statuses().values()))}
    for place, (axis, values) in enumerate(opened.axes.items()):
        found[axis] = pa.array([values[index] for index in opened.stored.column("case_cell")[:, place].tolist()])
    for index, metric in enumerate(opened.metrics):
        found[metric] = pa.array(opened.gather("metrics")[:, index])
    found["threshold"] = pa.array(opened.gather("threshold"))
    for index, axis in enumerate(opened.axes):
        for side, role in enumerate(("rollout", "training")):
            found[f"observed.{role}.{axis}"] = pa.array(opened.gather("observed", (side, index)).tolist())
    table = pa.table(found)
    began = time.perf_counter()
    with parquet.ParquetWriter(target, table.schema, **ZSTD) as writer:
        for start in range(0, len(table), batch):
            writer.write_table(table.slice(start, batch))
    return time.perf_counter() - began


def write_xarray(cube: Path, target: Path) -> float:
    """The same cells in the same chunks, appended by values of the first axis; returns the seconds of writing."""
    source = xarray.open_zarr(cube, consolidated=False, chunks=None)[list(CELLS)].load()
    lead, chunk = source["status"].dims, zarr.open_group(cube, mode="r")["status"].chunks
    for name in source.variables:
        source[name].encoding.clear()
    encoding = {name: {"chunks": (*chunk, *source[name].shape[len(lead) :])} for name in source.data_vars}
    began = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):  # consolidated metadata is no part of Zarr 3 yet
        source.isel({lead[0]: [0]}).to_zarr(target, encoding=encoding)
        for index in range(1, source.sizes[lead[0]]):
            source.isel({lead[0]: [index]}).to_zarr(target, append_dim=lead[0])
    return time.perf_counter() - began


def write_columns(cube: Path, folder: Path) -> int:
    """Every array of the cube as columns of Parquet files, one a family; returns their bytes."""
    folder.mkdir()
    opened = open_cube(cube)
    cases: dict[str, pa.Array] = {}
    for spec in CELL_ARRAYS:
        cases |= _columns(spec.name, opened.gather(spec.name))
    for spec in CASE_ARRAYS:
        cases |= _columns(spec.name, np.asarray(opened.stored.array(spec.name)[...]))
    for name, array in zarr.open_group(cube, mode="r")["measured"].arrays():
        cases |= _columns(name, np.asarray(array[...]))
    tokens = {spec.name: pa.array(np.asarray(opened.stored.array(spec.name)[...])) for spec in TOKEN_ARRAYS}
    for name, columns in {"cases": cases, "tokens": tokens}.items():
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet", **ZSTD)
    return sum(path.stat().st_size for path in folder.iterdir())
