"""The generic layout: one record a sequence, with the fields' own names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from xcfg.errors import ArtifactError
from xcfg.importers import values
from xcfg.importers.groups import grouped, records_of_groups
from xcfg.importers.table import is_table, records_of_table
from xcfg.importers.top_logprobs import top_logprobs
from xcfg.model.dtypes import normal_dtype
from xcfg.model.json import Json
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

T = TypeVar("T")

FIELDS = (
    "id",
    "prompt_ids",
    "response_ids",
    "logprobs",
    "mask",
    "position_ids",
    "rank",
    "weight_version",
    "top_logprobs",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "logprobs_mode",
    "dtype",
)
"""What a record may have. Every other field is passed over, and a field that is null is absent."""

_REQUIRED = frozenset({"response_ids", "logprobs"})


class GenericImporter:
    """Records whose fields are those of :class:`xcfg.model.recorded.Record`; ``weight_version`` is one or a list."""

    def claims(self, fields: frozenset[str]) -> bool:
        """Whether a row has ``response_ids`` and ``logprobs``, its own or of a record that it holds."""
        return fields >= _REQUIRED or any(group.keys() >= _REQUIRED for group in grouped(fields, FIELDS).values())

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """The records in the order of the rows; both roles write the same fields. Raises ArtifactError."""
        for row in rows:
            for one in _separated(row):
                yield _record(one)


def _separated(row: Row) -> Iterator[Row]:
    """The row itself where it is one record, else a row a record."""
    if is_table(row):
        return records_of_table(row, FIELDS)
    if "response_ids" not in row.fields and grouped(row.fields, FIELDS):
        return records_of_groups(row, FIELDS)
    return iter((row,))


def _record(row: Row) -> Record:
    return Record(
        id=_name(values.field(row, "id"), row, "id"),
        response_ids=values.token_ids(values.field(row, "response_ids"), row, "response_ids"),
        logprobs=values.logprobs(values.field(row, "logprobs"), row, "logprobs"),
        mask=_optional(row, "mask", values.mask),
        prompt_ids=_optional(row, "prompt_ids", values.token_ids),
        position_ids=_optional(row, "position_ids", values.integers),
        rank=_optional(row, "rank", values.integer),
        weight_versions=_optional(row, "weight_version", _names) or (),
        semantics=_semantics(row),
        top_logprobs=_optional(row, "top_logprobs", top_logprobs),
        dtype=normal_dtype(_optional(row, "dtype", values.text) or ""),
        place=row.place,
    )


def _optional(row: Row, name: str, convert: Callable[[object, Row, str], T]) -> T | None:
    value = row.fields.get(name)
    return None if value is None else convert(value, row, name)


def _name(value: object, row: Row, name: str) -> str:
    """An id or a version: text as it is, an integer in decimal."""
    if isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype.kind == "U"):
        return values.text(value, row, name)
    return str(values.integer(value, row, name))


def _names(value: object, row: Row, name: str) -> tuple[str, ...]:
    """One version, or one a response token."""
    if isinstance(value, np.ndarray) and value.ndim:
        value = value.tolist()
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(_name(item, row, name) for item in items)


def _semantics(row: Row) -> dict[str, Json]:
    stated = {name: value for name in _SEMANTICS if (value := row.fields.get(name)) is not None}
    return {name: _SEMANTICS[name](value, row, name) for name, value in stated.items()}


def _finite(value: object, row: Row, name: str) -> float:
    found = values.number(value, row, name)
    if not math.isfinite(found):
        raise ArtifactError(f"{name} is {found}, not a finite number", where=row.place)
    return found


_SEMANTICS: dict[str, Callable[[object, Row, str], Json]] = {
    "temperature": _finite,
    "top_p": _finite,
    "top_k": values.integer,
    "min_p": _finite,
    "logprobs_mode": values.text,
}
