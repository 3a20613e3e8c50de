"""JSON: one array of objects, one object of columns, or one record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from xcfg.errors import ArtifactError
from xcfg.importers.formats.pickled import refuse_pickle
from xcfg.importers.formats.strict_json import parse
from xcfg.model.recorded import Row

_BOM = b"\xef\xbb\xbf"
_LINES = "one object a line is JSONL: name the file .jsonl"


def read(path: Path) -> Iterator[Row]:
    """The rows of ``path``, which is read whole; rows count from 0.

    An object whose values are all lists is a table by columns; any other object is one row. Raises ArtifactError.
    """
    refuse_pickle(path)
    found = parse(path.read_bytes().removeprefix(_BOM), path.name, hint=_LINES)
    if isinstance(found, list):
        yield from _objects(found, path.name)
    elif isinstance(found, dict) and found and all(isinstance(value, list) for value in found.values()):
        yield from _columns(found, path.name)
    elif isinstance(found, dict):
        yield Row(place=path.name, fields=found)
    else:
        raise ArtifactError("neither an array of objects nor an object of columns", where=path.name)


def _objects(items: list[object], name: str) -> Iterator[Row]:
    for index, item in enumerate(items):
        place = f"{name} row {index}"
        if not isinstance(item, dict):
            raise ArtifactError("the item is not a JSON object", where=place)
        yield Row(place=place, fields=item)


def _columns(columns: dict[str, list[object]], name: str) -> Iterator[Row]:
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{column} {length}" for column, length in lengths.items())
        raise ArtifactError(f"columns of different lengths: {found}", where=name)
    for index, values in enumerate(zip(*columns.values(), strict=True)):
        yield Row(place=f"{name} row {index}", fields=dict(zip(columns, values, strict=True)))
