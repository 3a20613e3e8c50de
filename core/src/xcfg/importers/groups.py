"""Files of arrays with a group of fields a record, named ``ID/logprobs`` or ``ID.logprobs``: made one row a record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from xcfg.errors import ArtifactError
from xcfg.model.recorded import Row


def grouped(stored: Iterable[str], names: Collection[str]) -> dict[str, dict[str, str]]:
    """Record id to field to the name it is stored under, of the groups that hold ``response_ids`` or ``logprobs``.

    The field, one of ``names``, is what follows the last mark.
    """
    found: dict[str, dict[str, str]] = {}
    for place in stored:
        at = max(place.rfind("/"), place.rfind("."))
        if at > 0 and place[at + 1 :] in names:
            found.setdefault(place[:at], {})[place[at + 1 :]] = place
    return {key: fields for key, fields in found.items() if "response_ids" in fields or "logprobs" in fields}


def records_of_groups(row: Row, names: Collection[str]) -> Iterator[Row]:
    """A row for each group, its ``id`` the group's name; a field outside every group holds for all of them.

    Raises ArtifactError where a group holds a field twice.
    """
    shared = {name: row.fields[name] for name in names if name in row.fields}
    for key, stored in grouped(row.fields, names).items():
        place = f"{row.place} record {key!r}"
        for name in stored:
            if f"{key}/{name}" in row.fields and f"{key}.{name}" in row.fields:
                raise ArtifactError(f"holds {name} twice, after '/' and after '.'", where=place)
        own = {name: row.fields[kept] for name, kept in stored.items()}
        yield Row(place, {**shared, "id": key, **own})
