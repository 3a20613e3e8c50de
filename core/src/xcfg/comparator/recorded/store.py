"""Records of both sides on disk: arrays in one flat file, an index in SQLite that orders them by sequence id."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from attrs import frozen

from xcfg.comparator.utf8 import decoded, encoded
from xcfg.model.json import Json
from xcfg.model.recorded import Record

_TABLE = """
CREATE TABLE record (
    id BLOB, side INTEGER, rank INTEGER, at INTEGER, response INTEGER, mask INTEGER, prompt INTEGER, positions INTEGER,
    wide INTEGER, stated INTEGER, versions TEXT, place BLOB
)
"""
_OPENING = (
    "PRAGMA journal_mode=OFF",
    "PRAGMA synchronous=OFF",
    "PRAGMA temp_store=FILE",
    "PRAGMA locking_mode=EXCLUSIVE",
    _TABLE,
    "BEGIN",  # one transaction: a record a transaction takes twice as long
)
_ORDERED = "SELECT * FROM record ORDER BY id, side, rank, at"
_DECLARATIONS = "SELECT rank, stated, min(place) FROM record WHERE side = ? GROUP BY rank, stated ORDER BY rank, stated"
_WITHOUT_RANK = "SELECT min(place) FROM record WHERE side = ? AND rank < 0"
_WIDE = "SELECT EXISTS (SELECT 1 FROM record WHERE side = ? AND wide & 2)"
_DATA, _INDEX = "records.bin", "index.sqlite"
_BUFFER = 1 << 20
_BATCH = 1000


UNRANKED = -1
"""The rank of a record that states none."""


@frozen
class Stored:
    """One record's entry. ``response``, ``mask``, ``prompt`` and ``positions`` are lengths, None where absent.

    ``stated`` numbers what the record says of itself (:attr:`Store.statements`), ``versions`` its weight versions as
    a JSON list.
    """

    id: bytes
    side: int
    rank: int
    at: int
    response: int
    mask: int | None
    prompt: int | None
    positions: int | None
    wide: int
    stated: int
    versions: str
    where: bytes

    @property
    def name(self) -> str:
        """The sequence id."""
        return decoded(self.id)

    @property
    def place(self) -> str:
        """Where it stands: file and line."""
        return decoded(self.where)


@frozen(eq=False)
class Arrays:
    """What a record holds: (n,) response ids, logprobs and mask, (m,) prompt ids, positions; None where absent."""

    response_ids: np.ndarray
    logprobs: np.ndarray
    mask: np.ndarray | None
    prompt_ids: np.ndarray | None
    position_ids: np.ndarray | None


class Store:
    """Scratch space of one comparison, under an existing folder. A context manager; nothing outlives it."""

    def __init__(self, folder: Path) -> None:
        """Open empty files."""
        self.statements: list[dict[str, Json]] = []
        self._numbers: dict[object, int] = {}
        self._size = 0
        self._pending: list[tuple[object, ...]] = []
        with ExitStack() as opening:
            self._data = opening.enter_context((folder / _DATA).open("w+b", buffering=_BUFFER))
            self._index = opening.enter_context(closing(sqlite3.connect(folder / _INDEX)))
            for statement in _OPENING:
                self._index.execute(statement)
            self._open = opening.pop_all()

    def __enter__(self) -> Store:
        """The store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close both files."""
        self._open.close()

    def append(self, side: int, record: Record) -> None:
        """Write one record whose lengths agree."""
        arrays = [
            _narrow(record.response_ids),
            np.ascontiguousarray(record.logprobs),
            *([] if record.mask is None else [np.ascontiguousarray(record.mask)]),
            *([] if record.prompt_ids is None else [record.prompt_ids.astype(np.int64)]),
            *([] if record.position_ids is None else [record.position_ids.astype(np.int64)]),
        ]
        entry = (
            encoded(record.id),
            side,
            UNRANKED if record.rank is None else record.rank,
            self._size,
            len(record.response_ids),
            None if record.mask is None else len(record.mask),
            None if record.prompt_ids is None else len(record.prompt_ids),
            None if record.position_ids is None else len(record.position_ids),
            (arrays[0].dtype == np.int64) | (arrays[1].dtype == np.float64) << 1,
            self._statement(record),
            json.dumps(record.weight_versions),
            encoded(record.place),
        )
        for array in arrays:
            self._data.write(array.data)
            self._size += array.nbytes
        self._pending.append(entry)
        if len(self._pending) >= _BATCH:
            self._flush()

    def close_index(self) -> None:
        """Make everything appended readable."""
        self._flush()
        self._data.flush()

    def entries(self) -> Iterator[Stored]:
        """Every record in order of (id as bytes, side, rank, place in its file)."""
        for entry in self._index.execute(_ORDERED):
            yield Stored(*entry)

    def declarations(self, side: int) -> list[tuple[int, int, str]]:
        """Each distinct (rank, number of statement) of a side, by rank, with the place of one such record."""
        return [(rank, stated, decoded(place)) for rank, stated, place in self._index.execute(_DECLARATIONS, (side,))]

    def place_without_rank(self, side: int) -> str:
        """The place of a record that states no rank."""
        return decoded(self._index.execute(_WITHOUT_RANK, (side,)).fetchone()[0])

    def wide(self, side: int) -> bool:
        """Whether any logprobs of a side are float64."""
        return bool(self._index.execute(_WIDE, (side,)).fetchone()[0])

    def read(self, entry: Stored) -> Arrays:
        """The arrays of a record."""
        layout = (
            (np.dtype("i8" if entry.wide & 1 else "i4"), entry.response),
            (np.dtype("f8" if entry.wide & 2 else "f4"), entry.response),
            (np.dtype("?"), entry.mask),
            (np.dtype("i8"), entry.prompt),
            (np.dtype("i8"), entry.positions),
        )
        buffer = os.pread(self._data.fileno(), sum(dtype.itemsize * n for dtype, n in layout if n), entry.at)
        held: list[Any] = []
        at = 0
        for dtype, n in layout:
            held.append(None if n is None else np.frombuffer(buffer, dtype=dtype, count=n, offset=at))
            at += dtype.itemsize * (n or 0)
        return Arrays(*held)

    def _statement(self, record: Record) -> int:
        key = (tuple(sorted(record.semantics.items())), record.dtype, record.assumed)
        number = self._numbers.setdefault(key, len(self.statements))
        if number == len(self.statements):
            said = {"semantics": dict(record.semantics), "dtype": record.dtype, "assumed": list(record.assumed)}
            self.statements.append(said)
        return number

    def _flush(self) -> None:
        marks = ", ".join("?" * len(Stored.__attrs_attrs__))
        self._index.executemany(f"INSERT INTO record VALUES ({marks})", self._pending)
        self._pending.clear()


def _narrow(ids: np.ndarray) -> np.ndarray:
    """Token ids in half the space where they fit."""
    fits = not len(ids) or int(ids.max()) < 1 << 31
    return ids.astype(np.int32 if fits else np.int64)
