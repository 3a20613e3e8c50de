"""A column of a record batch as one Python value a row, lists of numbers as numpy views and without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyarrow import types


def values(column: pa.Array) -> Sequence[object]:
    """One value a row: None for null, numpy arrays for lists of numbers, dicts for structs, else Arrow's own.

    A null in a list of floats is NaN. A list of integers or booleans with a null is a Python list, which keeps it.
    """
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return values(column.storage)
    if types.is_dictionary(kind):
        return values(column.dictionary_decode())
    if types.is_struct(kind):
        return _structs(column)
    if types.is_list(kind) or types.is_large_list(kind):
        offsets = column.offsets.to_numpy(zero_copy_only=False)
        return _lists(column, column.values, offsets)
    if types.is_fixed_size_list(kind):
        offsets = (np.arange(len(column) + 1) + column.offset) * kind.list_size
        return _lists(column, column.values, offsets)
    return _plain(column)


def _lists(column: pa.Array, items: pa.Array, offsets: np.ndarray) -> Sequence[object]:
    """``offsets`` are places in ``items``, which reaches beyond this column where the column is a slice."""
    kind = items.type
    first = int(offsets[0])
    items = items.slice(first, int(offsets[-1]) - first)
    real = types.is_floating(kind)
    if not (real or ((types.is_integer(kind) or types.is_boolean(kind)) and not items.null_count)):
        return _plain(column)
    flat = items.to_numpy(zero_copy_only=False)
    ends = (offsets - first).tolist()
    rows: list[object] = [flat[start:end] for start, end in pairwise(ends)]
    if column.null_count:
        present = column.is_valid().to_numpy(zero_copy_only=False)
        return [row if valid else None for row, valid in zip(rows, present, strict=True)]
    return rows


def _structs(column: pa.Array) -> Sequence[object]:
    names = [item.name for item in column.type]
    parts = [values(part) for part in column.flatten()]
    rows: list[object] = [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
    present = column.is_valid().to_numpy(zero_copy_only=False)
    return [row if valid else None for row, valid in zip(rows, present, strict=True)]


def _plain(column: pa.Array) -> Sequence[object]:
    """Arrow's own values; of times the bare number, for Python has no nanoseconds. Raises ArrowInvalid."""
    if types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    try:
        found: list[object] = column.to_pylist(maps_as_pydicts="strict")
    except (KeyError, ValueError, OverflowError) as error:  # a key twice, text that is not UTF-8
        raise pa.ArrowInvalid(f"values of type {column.type}: {error}") from error
    return found
