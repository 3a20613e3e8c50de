"""Wrong importers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from attrs import evolve

from xcfg.errors import ArtifactError
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role
from xcfg.plugin.protocols import Importer


class ImporterMutant:
    """An importer that passes everything on to ``inner``; a subclass spoils one thing."""

    def __init__(self, inner: Importer) -> None:
        """Wrap ``inner``."""
        self.inner = inner

    def claims(self, fields: frozenset[str]) -> bool:
        """As the correct one."""
        return self.inner.claims(fields)

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """The correct records, each spoilt."""
        for record in self.inner.records(rows, role):
            yield self.spoil(record)

    def spoil(self, record: Record) -> Record:
        """The record as it is."""
        return record


class ClaimsEverything(ImporterMutant):
    """Every file is its own."""

    def claims(self, fields: frozenset[str]) -> bool:
        """Yes."""
        return True


class RecordsSorted(ImporterMutant):
    """Gives the records in the order of their names."""

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """Read all, sort, give."""
        yield from sorted(super().records(rows, role), key=lambda record: record.id)


class DuplicatesDropped(ImporterMutant):
    """Gives a record once, however often the file has it."""

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """Leave out what was seen."""
        seen: set[bytes] = set()
        for record in super().records(rows, role):
            if (tokens := record.response_ids.tobytes()) not in seen:
                seen.add(tokens)
                yield record


class BadRowsSkipped(ImporterMutant):
    """Passes over rows that it cannot read."""

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """Read what can be read."""
        for row in rows:
            try:
                yield from list(super().records([row], role))
            except ArtifactError:
                continue


class NullIsCertainty(ImporterMutant):
    """A logprob that is missing becomes 0.0, the logarithm of certainty."""

    def spoil(self, record: Record) -> Record:
        """Replace NaN."""
        return evolve(record, logprobs=np.nan_to_num(record.logprobs, nan=0.0, neginf=-np.inf))


class InfinityClipped(ImporterMutant):
    """Minus infinity becomes the smallest number there is."""

    def spoil(self, record: Record) -> Record:
        """Clip."""
        return evolve(record, logprobs=np.maximum(record.logprobs, np.finfo(record.logprobs.dtype).min))


class LengthsRepaired(ImporterMutant):
    """Cuts tokens and logprobs to the shorter of the two."""

    def spoil(self, record: Record) -> Record:
        """Trim."""
        size = min(len(record.response_ids), len(record.logprobs))
        return evolve(record, response_ids=record.response_ids[:size], logprobs=record.logprobs[:size])


class PaddingGuessed(ImporterMutant):
    """Takes trailing logprobs of -1.0 and more for padding: no layout declares that."""

    def spoil(self, record: Record) -> Record:
        """Trim what looks like nothing."""
        size = int(np.flatnonzero(record.logprobs < -1.0).max(initial=0)) + 1
        return evolve(record, response_ids=record.response_ids[:size], logprobs=record.logprobs[:size])


class LogprobsShifted(ImporterMutant):
    """The logprob of each token stands one place too early."""

    def spoil(self, record: Record) -> Record:
        """Rotate."""
        return evolve(record, logprobs=np.roll(record.logprobs, -1))


class MaskLeftOut(ImporterMutant):
    """Every token counts."""

    def spoil(self, record: Record) -> Record:
        """Forget the mask."""
        return evolve(record, mask=None)


class SidesMixedUp(ImporterMutant):
    """Reads the rollout's logprobs for both sides, which then always agree."""

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """One role for all."""
        return self.inner.records(rows, Role.ROLLOUT)


class AssumptionsUnsaid(ImporterMutant):
    """Fills in what the file does not say and keeps quiet about it."""

    def spoil(self, record: Record) -> Record:
        """Say nothing."""
        return evolve(record, assumed=())


class PlaceLost(ImporterMutant):
    """Does not say where a record stands."""

    def spoil(self, record: Record) -> Record:
        """Forget it."""
        return evolve(record, place="")


class WholeFileRead(ImporterMutant):
    """Keeps every row in memory before it gives the first record."""

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """Read all, then give."""
        yield from self.inner.records(list(rows), role)


class RowsChanged(ImporterMutant):
    """Scales the logprobs where they are, for whoever reads the row next."""

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """Spoil the arrays of a row when the next one is asked for."""
        yield from self.inner.records(_spoilt(rows), role)


def _spoilt(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        yield row
        for value in row.fields.values():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                value *= 2


IMPORTER_MUTANTS: tuple[type[ImporterMutant], ...] = (
    ClaimsEverything,
    RecordsSorted,
    DuplicatesDropped,
    BadRowsSkipped,
    NullIsCertainty,
    InfinityClipped,
    LengthsRepaired,
    PaddingGuessed,
    LogprobsShifted,
    MaskLeftOut,
    SidesMixedUp,
    AssumptionsUnsaid,
    PlaceLost,
    WholeFileRead,
    RowsChanged,
)
