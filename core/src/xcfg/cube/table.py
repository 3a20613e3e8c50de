"""The case table: one row for every planned case, in columns, read back whole and merged with new outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import evolve, frozen

from xcfg.cube.grid import blocks
from xcfg.cube.layout import Layout
from xcfg.cube.record import record
from xcfg.cube.schema import CASE_ARRAYS, FLAT_CHUNK, SIDES, ArraySpec
from xcfg.cube.store import Array, Values, filled, put, read, sync
from xcfg.model.outcome import CaseOutcome

SPECS: Mapping[str, ArraySpec] = {spec.name: spec for spec in CASE_ARRAYS}
_COUNTS = ("token_count", "rollout_ranks", "train_ranks")


@frozen(kw_only=True, eq=False)
class Rows:
    """What the table says of each case besides its place.

    ``columns`` holds ``side_id``, ``token_count``, ``rollout_ranks`` and ``train_ranks``; ``lists`` the distinct lists
    of sequence ids, the empty one first, and ``used`` (cases,) which of them the tokens of a case index.
    """

    columns: Mapping[str, Values]
    lists: tuple[tuple[str, ...], ...]
    used: Values

    @classmethod
    def stored(cls, columns: Mapping[str, Values], sequence_ids: Sequence[str]) -> Rows:
        """The rows as read: columns of the table by name, and the whole of ``sequence_id``."""
        bounds = np.stack([columns["sequence_start"], columns["sequence_count"]], axis=1)
        bounds[bounds[:, 1] == 0] = 0
        distinct, used = np.unique(np.concatenate([[[0, 0]], bounds]), axis=0, return_inverse=True)
        return cls(
            columns={name: columns[name] for name in ("side_id", *_COUNTS)},
            lists=tuple(tuple(sequence_ids[start : start + count]) for start, count in distinct.tolist()),
            used=used.reshape(-1)[1:],
        )

    def padded(self, cases: int) -> Rows:
        """The same with empty rows behind them, ``cases`` rows in all."""
        more = cases - len(self.used)
        columns = {
            name: np.concatenate([values, filled((more, *values.shape[1:]), SPECS[name])])
            for name, values in self.columns.items()
        }
        return evolve(self, columns=columns, used=np.append(self.used, np.zeros(more, dtype=np.int64)))

    def updated(self, new: Mapping[int, CaseOutcome]) -> Rows:
        """The same with the rows of executed cases replaced, by position."""
        columns = {name: values.copy() for name, values in self.columns.items()}
        known = {ids: number for number, ids in enumerate(self.lists)}
        used = self.used.copy()
        for index, outcome in new.items():
            pairs, tokens = outcome.comparison.per_rank, outcome.tokens
            columns["side_id"][index] = (outcome.rollout.side_id, outcome.training.side_id)
            columns["token_count"][index] = 0 if tokens is None else len(tokens.token)
            columns["rollout_ranks"][index] = max((pair.rollout_rank + 1 for pair in pairs), default=0)
            columns["train_ranks"][index] = max((pair.train_rank + 1 for pair in pairs), default=0)
            used[index] = known.setdefault(() if tokens is None else tokens.sequence_ids, len(known))
        return Rows(columns=columns, lists=tuple(known), used=used)

    def extent(self, name: str) -> int:
        """The largest value of a column of counts; 0 without cases."""
        return int(self.columns[name].max(initial=0))


def no_rows() -> Rows:
    """The table of a cube without cases."""
    counts = {name: filled((0,), SPECS[name]) for name in _COUNTS}
    columns = {"side_id": filled((0, len(SIDES)), SPECS["side_id"]), **counts}
    return Rows(columns=columns, lists=((),), used=np.zeros(0, dtype=np.int64))


def token_starts(counts: Values, extensions: Sequence[int]) -> Values:
    """First element of each case in the token arrays, in case order; 0 for a case without tokens.

    The cases of each enlargement of the plan start at a chunk boundary, so that it adds chunks and changes none.
    """
    starts, at = np.zeros(len(counts), dtype=np.int64), 0
    for low, high in zip([0, *extensions], [*extensions, len(counts)], strict=True):
        at += -at % FLAT_CHUNK if low else 0
        ends = at + np.cumsum(counts[low:high])
        starts[low:high] = ends - counts[low:high]
        at = int(ends[-1]) if high > low else at
    return np.where(counts > 0, starts, 0)


def sequence_table(rows: Rows, extensions: Sequence[int]) -> tuple[list[str], Values]:
    """All sequence ids, each distinct list once in case order, and the start of each case's list.

    As with tokens, the lists that an enlargement of the plan brings start at a chunk boundary.
    """
    ids: list[str] = []
    starts = np.zeros(len(rows.lists), dtype=np.int64)
    numbers, firsts = np.unique(rows.used, return_index=True)
    before = 0
    for first, number in sorted(zip(firsts.tolist(), numbers.tolist(), strict=True)):
        if not number:
            continue
        if any(before < edge <= first for edge in extensions):
            ids.extend([""] * (-len(ids) % FLAT_CHUNK))
        starts[number], before = len(ids), first
        ids.extend(rows.lists[number])
    return ids, starts[rows.used]


def write_table(
    arrays: Mapping[str, Array],
    layout: Layout,
    rows: Rows,
    starts: Mapping[str, Values],
    held: Mapping[str, Values],
) -> None:
    """Write every column but ``record`` where it differs from ``held``, the columns as they are stored.

    ``starts`` holds ``token_start`` and ``sequence_start``.
    """
    lengths = np.array([len(ids) for ids in rows.lists], dtype=np.int64)
    columns = {
        "case": layout.cases,
        "case_name": layout.names,
        "case_changed": layout.changed,
        "case_cell": layout.cells,
        "sequence_count": lengths[rows.used],
        **rows.columns,
        **starts,
    }
    for name, spec in SPECS.items():
        if name == "record":
            continue
        array = arrays[name]
        wanted, stored = filled(array.shape, spec), filled(array.shape, spec)
        if wanted.size:
            wanted[...] = columns[name]
        if name in held:
            stored[: len(held[name])] = held[name]
        sync(array, wanted, stored)


def write_records(array: Array, layout: Layout, outcomes: Sequence[CaseOutcome]) -> None:
    """Write the evidence of ``outcomes``; it is long, so the records of other cases are not loaded."""
    places = np.array([layout.index[outcome.case.id] for outcome in outcomes], dtype=np.int64).reshape(-1, 1)
    for block in blocks(places, array.shape, array.chunks):
        held = read(array, block.region)
        values = held.copy()
        for item, inside in zip(block.items.tolist(), block.inside[0].tolist(), strict=True):
            values[inside] = record(outcomes[item])
        put(array, block.region, values, held)
