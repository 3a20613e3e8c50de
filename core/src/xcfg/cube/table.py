"""The case table: one row for every planned case, read back whole and merged with new outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from xcfg.cube.axis import value_text
from xcfg.cube.grid import blocks
from xcfg.cube.layout import Layout
from xcfg.cube.record import record
from xcfg.cube.schema import CASE_ARRAYS, FLAT_CHUNK, SIDES
from xcfg.cube.store import Array, Values, filled, put, read, sync
from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome


@frozen(kw_only=True)
class Row:
    """What the table says of a case besides its place. ``sequences`` are the ids its tokens index."""

    side_ids: tuple[str, str] = ("", "")
    tokens: int = 0
    sequences: tuple[str, ...] = ()
    rollout_ranks: int = 0
    train_ranks: int = 0


def outcome_row(outcome: CaseOutcome) -> Row:
    """The row of an executed case."""
    pairs = outcome.comparison.per_rank
    return Row(
        side_ids=(outcome.rollout.side_id, outcome.training.side_id),
        tokens=0 if outcome.tokens is None else len(outcome.tokens.token),
        sequences=() if outcome.tokens is None else outcome.tokens.sequence_ids,
        rollout_ranks=max((pair.rollout_rank + 1 for pair in pairs), default=0),
        train_ranks=max((pair.train_rank + 1 for pair in pairs), default=0),
    )


def token_starts(rows: Sequence[Row], extensions: Sequence[int]) -> list[int]:
    """First element of each case in the token arrays, in case order; 0 for a case without tokens.

    The cases of each enlargement of the plan start at a chunk boundary, so that it adds chunks and changes none.
    """
    starts, at, aligned = [], 0, set(extensions)
    for index, row in enumerate(rows):
        if index in aligned:
            at += -at % FLAT_CHUNK
        starts.append(at if row.tokens else 0)
        at += row.tokens
    return starts


def token_total(rows: Sequence[Row], starts: Sequence[int]) -> int:
    """Length of the token arrays."""
    return max((start + row.tokens for row, start in zip(rows, starts, strict=True)), default=0)


def sequence_table(rows: Sequence[Row], extensions: Sequence[int]) -> tuple[list[str], list[int]]:
    """All sequence ids, each distinct list once in case order, and the start of each case's list."""
    ids: list[str] = []
    known: dict[tuple[str, ...], int] = {(): 0}
    starts, aligned, pad = [], set(extensions), False
    for index, row in enumerate(rows):
        pad = pad or index in aligned
        if row.sequences not in known:
            ids.extend([""] * (-len(ids) % FLAT_CHUNK if pad else 0))
            known[row.sequences], pad = len(ids), False
            ids.extend(row.sequences)
        starts.append(known[row.sequences])
    return ids, starts


def write_table(
    arrays: Mapping[str, Array], layout: Layout, rows: Sequence[Row], starts: Mapping[str, Sequence[int]]
) -> None:
    """Write every column but ``record`` where it differs; ``starts`` holds ``token_start`` and ``sequence_start``."""
    columns: dict[str, Sequence[Json]] = {
        "case": layout.cases,
        "case_name": layout.names,
        "case_changed": [value_text(names) for names in layout.changed],
        "case_cell": layout.cells,
        "side_id": [row.side_ids for row in rows],
        "token_count": [row.tokens for row in rows],
        "sequence_count": [len(row.sequences) for row in rows],
        "rollout_ranks": [row.rollout_ranks for row in rows],
        "train_ranks": [row.train_ranks for row in rows],
        **starts,
    }
    for spec in CASE_ARRAYS:
        if spec.name == "record":
            continue
        array = arrays[spec.name]
        values = filled(array.shape, spec)
        if values.size:
            values[...] = list(columns[spec.name])
        sync(array, values)


def write_records(array: Array, layout: Layout, outcomes: Sequence[CaseOutcome]) -> None:
    """Write the evidence of ``outcomes``; it is long, so the records of other cases are not loaded."""
    wanted = [(item, (layout.index[outcome.case.id],)) for item, outcome in enumerate(outcomes)]
    for block in blocks(wanted, array.shape, array.chunks):
        values = read(array, block.region)
        for item, inside in block.members:
            values[inside] = record(outcomes[item])
        put(array, block.region, values)


def read_rows(arrays: Mapping[str, Values], sequence_ids: Sequence[str]) -> list[Row]:
    """The rows as stored; ``arrays`` holds the loaded columns."""
    rows = []
    for index in range(len(arrays["case"])):
        start, count = int(arrays["sequence_start"][index]), int(arrays["sequence_count"][index])
        rows.append(
            Row(
                side_ids=(str(arrays["side_id"][index, 0]), str(arrays["side_id"][index, len(SIDES) - 1])),
                tokens=int(arrays["token_count"][index]),
                sequences=tuple(sequence_ids[start : start + count]),
                rollout_ranks=int(arrays["rollout_ranks"][index]),
                train_ranks=int(arrays["train_ranks"][index]),
            )
        )
    return rows
