"""Rows of a cube as named columns, one table a case or one for all: what an export writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from attrs import frozen

from xcfg.cube.query import rows
from xcfg.cube.reader import Cube
from xcfg.model.json import Json
from xcfg.model.outcome import PairedTokens

TOKEN_COLUMNS: Final = {
    "sequence": "string",
    "position": "int64",
    "token_id": "int64",
    "rollout_logp": "float32",
    "train_logp": "float32",
    "rollout_rank": "int64",
    "train_rank": "int64",
}
"""Columns of a token with their types: id of its sequence, position in the response from 0, token id, logprobs in nats,
ranks that scored it."""


@frozen(kw_only=True)
class Table:
    """Columns in order with their types (``bool``, ``int64``, ``float32``, ``float64``, ``string``, or ``json`` for
    values of several types) and the rows, block by block; a block maps each column to as many values as it has rows.
    """

    columns: Mapping[str, str]
    blocks: Iterator[Mapping[str, Sequence[Json]]]
    empty: bool


def case_table(cube: Cube, where: str = "", select: Sequence[str] = ()) -> Table:
    """One row a case, as :func:`xcfg.cube.query.query` gives them. Raises as a query does."""
    return table_of(rows(cube, where, select))


def table_of(found: Sequence[Mapping[str, Json]]) -> Table:
    """The rows of a query as a table of one block."""
    names = list(found[0]) if found else []
    values = {name: [row[name] for row in found] for name in names}
    columns = {name: column_type(values[name]) for name in names}
    return Table(columns=columns, blocks=iter([values] if found else []), empty=not found)


def token_table(cube: Cube, where: str = "", select: Sequence[str] = ()) -> Table:
    """One row for every active response token of the cases that meet ``where``, one case a block.

    ``select`` names token columns and fields of the case; without it ``case_id`` and every token column. Only one
    case's tokens are in memory. Raises as a query does.
    """
    chosen = tuple(select) or ("case_id", *TOKEN_COLUMNS)
    fields = [name for name in chosen if name not in TOKEN_COLUMNS]
    found = rows(cube, where, ["case_id", *fields])
    place = {case: index for index, case in enumerate(cube.cases)}
    found = [row for row in found if cube.stored.rows[place[str(row["case_id"])]].tokens]
    types = {name: column_type([row[name] for row in found]) for name in fields}
    columns = {name: TOKEN_COLUMNS[name] if name in TOKEN_COLUMNS else types[name] for name in chosen}
    return Table(columns=columns, blocks=(_block(cube, row, chosen) for row in found), empty=not found)


def column_type(values: Sequence[Json]) -> str:
    """The one type of a column's values, None aside; ``string`` where there is none, ``json`` where they differ."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return "string"
    if kinds == {bool}:
        return "bool"
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return "int64"
    return "float64" if kinds in ({float}, {int, float}) else "json"


def _block(cube: Cube, row: Mapping[str, Json], chosen: Sequence[str]) -> dict[str, Sequence[Json]]:
    tokens = cube.tokens(str(row["case_id"]))
    assert tokens is not None
    count = len(tokens.token)
    return {name: _token_column(tokens, name) if name in TOKEN_COLUMNS else [row[name]] * count for name in chosen}


def _token_column(tokens: PairedTokens, name: str) -> list[Json]:
    """The values of one column; a logprob that is not finite is None, as a number is in a row of a query."""
    if name == "sequence":
        return [tokens.sequence_ids[index] for index in tokens.sequence]
    found = getattr(tokens, {"token_id": "token"}.get(name, name))
    return [value if np.isfinite(value) else None for value in found.tolist()]
