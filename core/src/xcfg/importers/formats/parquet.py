"""Parquet: rows of whatever columns the file has; lists of numbers come as views on Arrow's own memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from xcfg.errors import ArtifactError, EnvironmentFault
from xcfg.importers.formats.pickled import refuse_pickle
from xcfg.model.recorded import Row

_BATCH_ROWS = 64
_BUFFER_BYTES = 1 << 20
"""A column is read through a buffer of this size and not a row group at once."""


def read(path: Path) -> Iterator[Row]:
    """The rows of ``path``, counted from 0, a small batch in memory at a time.

    Raises ArtifactError where the file is broken and EnvironmentFault where pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet

        from xcfg.importers.formats.arrow_columns import values
    except ModuleNotFoundError as error:
        message = f"reading Parquet needs {error.name}, which is not installed"
        raise EnvironmentFault(message, where=path.name, hint='pip install "xcfg[parquet]"') from error
    refuse_pickle(path)
    name, index = path.name, 0
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
            stored = file.schema_arrow.names
            if twice := [column for column, count in Counter(stored).items() if count > 1]:
                raise ArtifactError(f"column {twice[0]!r} appears twice", where=path.name)
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                columns = [values(column) for column in batch.columns]
                for row in zip(*columns, strict=True):
                    yield Row(f"{name} row {index}", dict(zip(stored, row, strict=True)))
                    index += 1
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ArtifactError(f"not a readable Parquet file: {error}", where=path.name) from error
