"""Rows of a cube as named columns, one table a case or one for all: what an export writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from attrs import evolve, field, frozen

from xcfg.cube.axis import Axis
from xcfg.cube.fields import default_selection, kinds
from xcfg.cube.grid import Values
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


@frozen(kw_only=True, eq=False)
class Grid:
    """Where the rows of a table of cases lie: axes cut down to the values they have, and (rows, axes) indices."""

    axes: tuple[Axis, ...]
    cells: Values


@frozen(kw_only=True, eq=False)
class Table:
    """Columns in order with their types (``bool``, ``int64``, ``float32``, ``float64``, ``string``, or ``json`` for
    values of several types) and the rows, block by block; a block maps each column to as many values as it has rows.

    ``whole`` are the columns without None, ``attributes`` say what the cube is of; a table of tokens has no ``grid``.
    """

    columns: Mapping[str, str]
    blocks: Iterator[Mapping[str, Sequence[Json]]]
    empty: bool
    whole: frozenset[str] = frozenset()
    attributes: Mapping[str, Json] = field(factory=dict)
    grid: Grid | None = None


def case_table(cube: Cube, where: str = "", select: Sequence[str] = ()) -> Table:
    """One row a case, as :func:`xcfg.cube.query.query` gives them. Raises as a query does."""
    found = rows(cube, where, (*(select or default_selection(cube)), "case_id"))
    place = {case: index for index, case in enumerate(cube.cases)}
    cases = [place[str(row["case_id"])] for row in found]
    shown = [{name: row[name] for name in select} for row in found] if select else found
    return evolve(table_of(shown, kinds(cube)), attributes=_attributes(cube), grid=_grid(cube, cases))


def table_of(found: Sequence[Mapping[str, Json]], kinds: Mapping[str, str] | None = None) -> Table:
    """The rows of a query as a table of one block; ``kinds`` gives types that do not follow from the values."""
    names = list(found[0]) if found else []
    values = {name: [row[name] for row in found] for name in names}
    columns = {name: (kinds or {}).get(name) or column_type(values[name]) for name in names}
    whole = frozenset(name for name in names if None not in values[name])
    return Table(columns=columns, blocks=iter([values] if found else []), empty=not found, whole=whole)


def token_table(cube: Cube, where: str = "", select: Sequence[str] = ()) -> Table:
    """One row for every active response token of the cases that meet ``where``, one case a block.

    ``select`` names token columns and fields of the case; without it ``case_id`` and every token column. Only one
    case's tokens are in memory. Raises as a query does.
    """
    chosen = tuple(select) or ("case_id", *TOKEN_COLUMNS)
    fields = [name for name in chosen if name not in TOKEN_COLUMNS]
    found = rows(cube, where, ["case_id", *fields])
    counts = dict(zip(cube.cases, cube.stored.column("token_count").tolist(), strict=True))
    found = [row for row in found if counts[str(row["case_id"])]]
    known = kinds(cube)
    types = {name: known.get(name) or column_type([row[name] for row in found]) for name in fields}
    columns = {name: TOKEN_COLUMNS[name] if name in TOKEN_COLUMNS else types[name] for name in chosen}
    whole = {name for name in fields if all(row[name] is not None for row in found)}
    return Table(
        columns=columns,
        blocks=(_block(cube, row, chosen) for row in found),
        empty=not found,
        whole=frozenset(whole | {name for name, kind in TOKEN_COLUMNS.items() if kind != "float32"}),
        attributes=_attributes(cube),
    )


def _attributes(cube: Cube) -> dict[str, Json]:
    return {name: cube.attributes[name] for name in ("experiment", "baseline", "contract") if name in cube.attributes}


def _grid(cube: Cube, cases: Sequence[int]) -> Grid:
    cells = cube.stored.column("case_cell")[list(cases)]
    axes, columns = [], []
    for place, axis in enumerate(cube.stored.geometry.axes):
        present, inside = np.unique(cells[:, place], return_inverse=True)
        axes.append(evolve(axis, values=tuple(axis.values[index] for index in present.tolist())))
        columns.append(inside.reshape(-1))
    return Grid(axes=tuple(axes), cells=np.stack(columns, axis=1) if columns else cells)


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
