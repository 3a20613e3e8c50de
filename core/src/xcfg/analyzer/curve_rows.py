"""Rows of a training log in CSV, JSONL or JSON, each with the place that messages name."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from xcfg.errors import InvalidInput
from xcfg.model.json import Json, tupled

Row = tuple[str, Mapping[str, object]]


@frozen
class Table:
    """``headers`` in the order of the file; ``rows`` of (place, header to value). A header a row lacks is missing.

    ``typed`` is True where the file itself tells numbers from text (JSON), so that text is never a number.
    """

    headers: tuple[str, ...] = field(converter=tupled)
    rows: tuple[Row, ...] = field(converter=tupled)
    typed: bool


def read_table(path: Path) -> Table:
    """The rows of a log, by suffix. Raises InvalidInput with the file and the line or record."""
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InvalidInput(
            f"training curves cannot be read from a file named *{path.suffix}",
            where=str(path),
            hint=f"give one of {', '.join(_READERS)}",
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", where=str(path), hint="give a text file in UTF-8") from error
    if not text.strip():
        raise InvalidInput("the file is empty", where=str(path), hint="export the log again, one row a step")
    return read(text, str(path))


def _csv(text: str, name: str) -> Table:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    headers: list[str] = []
    try:
        for cells in reader:
            place = f"{name} line {reader.line_num}"
            if not cells:
                continue
            if not headers:
                headers = _headers(cells, place)
                continue
            if len(cells) != len(headers):
                raise InvalidInput(
                    f"{len(cells)} cells under {len(headers)} headers",
                    where=place,
                    hint="leave a missing value blank, and quote text that holds a comma",
                )
            rows.append((place, dict(zip(headers, cells, strict=True))))
    except csv.Error as error:
        place = f"{name} line {reader.line_num}"
        raise InvalidInput(f"not CSV: {error}", where=place, hint="export the log again") from error
    return Table(headers, rows, typed=False)


def _headers(cells: list[str], place: str) -> list[str]:
    twice = next((cell for cell in cells if cells.count(cell) > 1), None)
    if twice is not None:
        raise InvalidInput(f"header {twice!r} appears twice", where=place, hint="give each column its own name")
    return cells


def _jsonl(text: str, name: str) -> Table:
    rows: list[Row] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{name} line {number}"
            rows.append((place, _record(_parse(line, place), place)))
    return _records(rows)


def _json(text: str, name: str) -> Table:
    """A list of records, or an object of columns of equal length."""
    value = _parse(text, name)
    if isinstance(value, list):
        places = [f"{name} record {at}" for at in range(len(value))]
        return _records([(place, _record(item, place)) for place, item in zip(places, value, strict=True)])
    columns = _record(value, name)
    lengths = {}
    for header, values in columns.items():
        if not isinstance(values, list):
            raise InvalidInput(
                f"column {header!r} is not a list", where=name, hint="give a list of records or lists by column"
            )
        lengths[header] = len(values)
    if len(set(lengths.values())) > 1:
        raise InvalidInput(f"columns of unequal lengths: {lengths}", where=name, hint="write null for a missing value")
    rows = [
        (f"{name} index {at}", {header: values[at] for header, values in columns.items()})
        for at in range(max(lengths.values(), default=0))
    ]
    return Table(columns, rows, typed=True)


def _records(rows: Sequence[Row]) -> Table:
    headers: dict[str, None] = {}
    for _, fields in rows:
        headers.update(dict.fromkeys(fields))
    return Table(headers, rows, typed=True)


def _record(value: Json, place: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise InvalidInput(
            f"expected an object, found {type(value).__name__}", where=place, hint="one object a step, keys as headers"
        )
    return value


def _parse(text: str, place: str) -> Json:
    """The value in ``text``: a whole file, or the one line that ``place`` names."""
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, place))
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} (line {error.lineno}, column {error.colno} of it)"
        raise InvalidInput(message, where=place, hint="the file may be cut short") from error
    except (ValueError, RecursionError) as error:  # an integer of more digits than Python converts; nesting
        raise InvalidInput(f"not JSON that a log needs: {error}", where=place, hint="export the log again") from error


def _unique(pairs: list[tuple[str, Json]], place: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidInput(f"key {key!r} appears twice", where=place, hint="keep one value a key")
        found[key] = value
    return found


_READERS: Mapping[str, Callable[[str, str], Table]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
}
