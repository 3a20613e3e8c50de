"""What is wrong with recorded sequences: one sentence a kind of fault, about the lowest sequence id, with the count."""

from __future__ import annotations

from attrs import frozen

from xcfg.comparator.defect import Defect
from xcfg.model.status import Status

Key = tuple[bytes, int]
"""Sequence id in UTF-8 and rank: which of several faulty records is named does not depend on the order of a file."""


@frozen
class _First:
    key: Key
    sentence: str
    count: int


class Faults:
    """Faults by status and kind."""

    def __init__(self) -> None:
        """None found."""
        self._found: dict[tuple[Status, str], _First] = {}

    def add(self, status: Status, kind: str, key: Key, sentence: str) -> None:
        """Count a fault; the sentence of the lowest key is kept."""
        known = self._found.get((status, kind))
        if known is None:
            self._found[status, kind] = _First(key, sentence, 1)
        else:
            lowest = min((known.key, known.sentence), (key, sentence))
            self._found[status, kind] = _First(*lowest, known.count + 1)

    def has(self, status: Status) -> bool:
        """Whether a fault of this status was found."""
        return any(found is status for found, _ in self._found)

    def defects(self) -> list[Defect]:
        """Each kind as a defect."""
        return [
            Defect(status, first.sentence + (f" ({first.count} such in all)" if first.count > 1 else ""))
            for (status, _), first in self._found.items()
        ]
