"""What is wrong with recorded sequences: one sentence a kind of fault, about the lowest sequence id, with the count."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from xcfg.comparator.defect import Defect
from xcfg.model.status import Status

Key = tuple[bytes, int]
"""Sequence id in UTF-8 and rank: which of several faulty records is named does not depend on the order of a file."""
WHOLE: Key = (b"", 0)
"""The key of what is wrong with a side, or with both, as a whole."""


class Kind(Enum):
    """What can be wrong; each kind is counted for itself, and gives one status."""

    EMPTY = "a side without a record", Status.INVALID_ARTIFACT
    LENGTH = "an array of another length than the tokens", Status.INVALID_ARTIFACT
    NOT_FINITE = "a NaN or infinite logprob", Status.NON_FINITE
    POSITIVE = "a logprob above zero", Status.INVALID_ARTIFACT
    RANKS = "ranks with a gap, or stated by some records only", Status.INVALID_ARTIFACT
    DUPLICATE = "two records of a sequence on one rank", Status.INVALID_ARTIFACT
    ONE_SIDED = "a sequence on one side only", Status.INVALID_IDENTITY
    DIFFERENT = "two records that differ", Status.INVALID_IDENTITY
    CHANGING = "weights that change inside a record", Status.INVALID_IDENTITY
    SEMANTICS = "logprobs of another meaning", Status.INVALID_IDENTITY
    UNKNOWN = "a field that is left out, where all must be stated", Status.INVALID_IDENTITY
    INACTIVE = "no active token", Status.ZERO_ACTIVE_TOKENS

    @property
    def status(self) -> Status:
        """The status it gives."""
        return self.value[1]


@frozen
class _First:
    key: Key
    sentence: str
    count: int


class Faults:
    """Faults by kind, and by the side or field that they are of."""

    def __init__(self) -> None:
        """None found."""
        self._found: dict[tuple[Kind, str], _First] = {}

    def add(self, kind: Kind, sentence: str, key: Key = WHOLE, of: str = "") -> None:
        """Count a fault ``of`` a side or field; the sentence of the lowest key is kept."""
        known = self._found.get((kind, of))
        if known is None:
            self._found[kind, of] = _First(key, sentence, 1)
        else:
            lowest = min((known.key, known.sentence), (key, sentence))
            self._found[kind, of] = _First(*lowest, known.count + 1)

    def has(self, status: Status) -> bool:
        """Whether a fault of this status was found."""
        return any(kind.status is status for kind, _ in self._found)

    def defects(self) -> list[Defect]:
        """Each kind as a defect."""
        return [
            Defect(kind.status, first.sentence + (f" ({first.count} such in all)" if first.count > 1 else ""))
            for (kind, _), first in self._found.items()
        ]
