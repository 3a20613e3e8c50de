"""A table written as CSV, JSON, Parquet or netCDF to an open file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import BinaryIO, Final

from xcfg.cube.export import Table
from xcfg.cube.netcdf import write_netcdf
from xcfg.errors import EnvironmentFault
from xcfg.model.json import Json

SCHEMA: Final = "xcfg.cube.export/1"


def text_of(value: Json) -> str:
    """A value in a text: a text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def write_csv(table: Table, stream: BinaryIO) -> int:
    """A line of names and one a row: texts as they are, everything else as JSON, null included. Returns the rows."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    count = 0
    for block in table.blocks:
        for row in zip(*(block[name] for name in table.columns), strict=True):
            writer.writerow([text_of(value) for value in row])
            count += 1
    text.flush()
    text.detach()
    return count


def write_json(table: Table, stream: BinaryIO) -> int:
    """One document with ``schema`` and ``rows``, a row a line. Returns the number of rows."""
    stream.write(f'{{"schema": {json.dumps(SCHEMA)}, "rows": ['.encode())
    count = 0
    for block in table.blocks:
        for row in zip(*(block[name] for name in table.columns), strict=True):
            found = dict(zip(table.columns, row, strict=True))
            line = json.dumps(found, ensure_ascii=False, allow_nan=False)
            stream.write(f"{',' if count else ''}\n{line}".encode())
            count += 1
    stream.write(b"\n]}\n")
    return count


def write_parquet(table: Table, stream: BinaryIO) -> int:
    """Typed columns, a row group a block; values of several types as JSON texts. Returns the number of rows.

    Raises EnvironmentFault without pyarrow.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        message = "a Parquet file needs pyarrow, which is not installed"
        raise EnvironmentFault(message, hint='python -m pip install "xcfg[parquet]"') from error
    types = {
        "bool": pyarrow.bool_(),
        "int64": pyarrow.int64(),
        "float32": pyarrow.float32(),
        "float64": pyarrow.float64(),
        "string": pyarrow.string(),
        "json": pyarrow.string(),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in table.columns.items()])
    count = 0
    with parquet.ParquetWriter(stream, schema) as writer:
        for block in table.blocks:
            columns = {
                name: [None if value is None else json.dumps(value) for value in block[name]]
                if kind == "json"
                else list(block[name])
                for name, kind in table.columns.items()
            }
            writer.write_table(pyarrow.table(columns, schema=schema))
            count += len(next(iter(block.values())))
    return count


FORMATS: Final[Mapping[str, Callable[[Table, BinaryIO], int]]] = {
    "csv": write_csv,
    "json": write_json,
    "parquet": write_parquet,
    "netcdf": write_netcdf,
}
"""Name of a format to its writer."""

SUFFIXES: Final[Mapping[str, str]] = {**{name: name for name in FORMATS}, "nc": "netcdf"}
"""Suffix of a file to the name of its format."""
