"""One value of a recorded row found and changed, however deep its layout puts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from attrs import evolve

from xcfg.model.recorded import Row

Path = tuple[Any, ...]
"""Keys of mappings and places of lists, one after the other; the last of an array is a tuple of places."""


def places_of(fields: Mapping[str, object], name: str, wanted: float) -> list[Path]:
    """Where a number stands below any field called ``name``."""
    return [path + rest for path, value in _named(fields, name) for rest in _numbers(value, wanted)]


def value_at(fields: Mapping[str, object], path: Path) -> Any:
    """What stands at a path."""
    found: Any = fields
    for key in path:
        found = found[key]
    return found


def with_value(row: Row, path: Path, value: object) -> Row:
    """The row with another value at a path; the row given stays as it is."""
    fields: Any = deepcopy(dict(row.fields))
    holder = value_at(fields, path[:-1])
    holder[path[-1]] = value
    return evolve(row, fields=fields)


def with_field(row: Row, name: str, value: object) -> Row:
    """The row with ``value`` for every field called ``name``."""
    for path, _ in _named(row.fields, name):
        row = with_value(row, path, value)
    return row


def without_field(row: Row, name: str) -> Row:
    """The row without any field called ``name``."""
    fields: Any = deepcopy(dict(row.fields))
    for path, _ in _named(row.fields, name):
        del value_at(fields, path[:-1])[path[-1]]
    return evolve(row, fields=fields)


def shortened(row: Row, path: Path) -> Row:
    """The row in which the list that holds the value at ``path`` lacks its last item, an array its last column."""
    holder = value_at(row.fields, path[:-1])
    return with_value(row, path[:-1], holder[..., :-1] if isinstance(holder, np.ndarray) else list(holder)[:-1])


def _named(fields: Mapping[str, object], name: str) -> Iterator[tuple[Path, object]]:
    """Every field called ``name``, at any depth of mappings and lists."""
    if name in fields:
        yield (name,), fields[name]
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield from (((key, *path), found) for path, found in _named(value, name))
        elif isinstance(value, list):
            for at, item in enumerate(value):
                if isinstance(item, Mapping):
                    yield from (((key, at, *path), found) for path, found in _named(item, name))


def _numbers(value: object, wanted: float) -> Iterator[Path]:
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "iuf" and value.ndim:
            yield from ((tuple(int(part) for part in place),) for place in np.argwhere(value == wanted))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from ((at, *path) for path in _numbers(item, wanted))
    elif isinstance(value, int | float) and not isinstance(value, bool) and value == wanted:
        yield ()
