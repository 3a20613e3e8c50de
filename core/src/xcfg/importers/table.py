"""Files of arrays that hold many records in one row, made one row a record.

With ``id`` (N,), a token field is either a matrix (N, L) whose rows hold their ``response_length`` (N,) tokens first
and padding after them, or flat with the records end to end. ``prompt_ids`` has ``prompt_length`` in the same way.
Padding is what a length declares and never what a mask says, for a token that is not active is still a token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np
from attrs import frozen

from xcfg.errors import ArtifactError
from xcfg.importers.values import integers
from xcfg.model.recorded import Row

_RESPONSE = ("response_ids", "logprobs", "mask", "position_ids", "top_logprobs")
_HINT = "flat arrays need response_length (N,), and prompt_length (N,) for prompt_ids"

_Items = Sequence[object] | np.ndarray


def is_table(row: Row) -> bool:
    """Whether the row's ``id`` is a list of ids and not one."""
    return _items(row.fields.get("id")) is not None


def records_of_table(row: Row, names: Collection[str]) -> Iterator[Row]:
    """A row for each id, with what each of ``names`` holds of it. Raises ArtifactError where sizes do not fit."""
    fields = {name: value for name in names if (value := row.fields.get(name)) is not None}
    ids = _items(fields["id"])
    count = 1 if ids is None else len(ids)
    response, prompt = (_lengths(row, name, count) for name in ("response_length", "prompt_length"))
    table = _Table(row=row, count=count, response=response, prompt=prompt)
    table.check_widths(fields)
    columns = [table.column(name, value) for name, value in fields.items()]
    for index, values in enumerate(zip(*columns, strict=True)):
        yield Row(f"{row.place} record {index}", dict(zip(fields, values, strict=True)))


@frozen(kw_only=True)
class _Table:
    """``response`` and ``prompt`` (N,) int64 are the declared lengths of ``count`` records."""

    row: Row
    count: int
    response: np.ndarray | None
    prompt: np.ndarray | None

    def column(self, name: str, value: object) -> Sequence[object]:
        """What each record has of the field; one value for all is each record's."""
        items = _items(value)
        lengths = self.prompt if name == "prompt_ids" else self.response
        if items is None:
            return [value] * self.count
        if _nested(items):
            return self._padded(name, items, lengths)
        if name == "prompt_ids" or name in _RESPONSE or (name == "weight_version" and len(items) != self.count):
            return self._flat(name, items, lengths)
        if len(items) != self.count:
            raise self._fault(f"{name} holds {len(items)} values for {self.count} records")
        return items.tolist() if isinstance(items, np.ndarray) else items

    def check_widths(self, fields: dict[str, object]) -> None:
        """Matrices whose rows are cut at the same place must be equally wide, or the cut falls elsewhere."""
        if self.response is None:
            return
        arrays = [(name, fields.get(name)) for name in _RESPONSE]
        widths = {name: array.shape[1] for name, array in arrays if isinstance(array, np.ndarray) and array.ndim > 1}
        if len(set(widths.values())) > 1:
            found = ", ".join(f"{name} {width}" for name, width in widths.items())
            raise self._fault(f"matrices of different widths: {found}")

    def _padded(self, name: str, items: _Items, lengths: np.ndarray | None) -> Sequence[object]:
        if len(items) != self.count:
            raise self._fault(f"{name} holds {len(items)} rows for {self.count} records")
        rows = list(items)
        for index, length in enumerate([] if lengths is None else lengths.tolist()):
            row = _items(rows[index])
            if row is not None and len(row) < length:
                raise self._fault(f"{name} holds {len(row)} values for the {length} of record {index}")
            rows[index] = rows[index] if row is None else row[:length]
        return rows

    def _flat(self, name: str, items: _Items, lengths: np.ndarray | None) -> Sequence[object]:
        if lengths is None:
            raise self._fault(f"{name} is flat and where its records end is not said", hint=_HINT)
        if name == "position_ids" and self.prompt is not None and len(items) != lengths.sum():
            lengths = lengths + self.prompt
        ends = [0, *np.cumsum(lengths).tolist()]
        if ends[-1] != len(items):
            raise self._fault(f"{name} holds {len(items)} values, the lengths of its records add up to {ends[-1]}")
        return [items[start:end] for start, end in pairwise(ends)]

    def _fault(self, message: str, hint: str = "") -> ArtifactError:
        return ArtifactError(message, where=self.row.place, hint=hint)


def _lengths(row: Row, name: str, count: int) -> np.ndarray | None:
    value = row.fields.get(name)
    if value is None:
        return None
    lengths = integers(value, row, name)
    if len(lengths) != count:
        raise ArtifactError(f"{name} holds {len(lengths)} lengths for {count} records", where=row.place)
    if lengths.size and lengths.min() < 0:
        raise ArtifactError(f"{name} holds the length {lengths.min()}", where=row.place)
    return lengths


def _items(value: object) -> _Items | None:
    """A list or an array that has items; None for one value."""
    listed = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
    return value if listed else None  # type: ignore[return-value]


def _nested(items: _Items) -> bool:
    if isinstance(items, np.ndarray):
        return items.ndim > 1
    return any(isinstance(item, list | tuple | np.ndarray) for item in items)
