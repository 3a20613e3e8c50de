"""Columns under other names: a field gets the value of the column that the user names."""

from __future__ import annotations

import difflib
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import cast

from xcfg.errors import ArtifactError
from xcfg.model.recorded import Row

_SHOWN = 20
_ABSENT = object()


def renamed(rows: Iterable[Row], columns: Mapping[str, str]) -> Iterator[Row]:
    """Each row with ``field`` set to the value of its ``column``, of ``columns`` {field: column}; the rest stays.

    A column is a name of the row, or names joined with dots that walk into nested objects. Raises ArtifactError where
    a row lacks one.
    """
    for row in rows:
        found = {name: _valued(row, column) for name, column in columns.items()}
        fields = cast("MutableMapping[str, object]", row.fields)  # only read: arrays that nobody asks for stay on disk
        yield Row(row.place, ChainMap(found, fields))


def _valued(row: Row, column: str) -> object:
    value = _walk(row.fields, column)
    if value is _ABSENT:
        raise _missing(row, column)
    return value


def _walk(fields: Mapping[str, object], column: str) -> object:
    """The value of a name as it stands, else of its parts: a name of npz or Parquet may itself hold a dot."""
    if column in fields:
        return fields[column]
    for at, letter in enumerate(column):
        inner = fields.get(column[:at]) if letter == "." else None
        if isinstance(inner, Mapping) and (value := _walk(inner, column[at + 1 :])) is not _ABSENT:
            return value
    return _ABSENT


def _missing(row: Row, column: str) -> ArtifactError:
    known = list(_columns(row.fields))
    near = difflib.get_close_matches(column, known, n=1)
    listed = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else "")
    hint = (f"did you mean {near[0]!r}? " if near else "") + f"the row has {listed or 'no column'}"
    return ArtifactError(f"column {column!r} is missing", where=row.place, hint=hint)


def _columns(fields: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for name, value in fields.items():
        yield f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _columns(value, f"{prefix}{name}.")
