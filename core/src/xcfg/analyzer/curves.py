"""Training curves by step: optional evidence beside a comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from attrs import field, frozen

from xcfg.analyzer.curve_names import EVALUATION, SPELLINGS, STEP, chosen
from xcfg.analyzer.curve_rows import Table, read_table
from xcfg.errors import InvalidInput
from xcfg.model.json import freeze, tupled

_LARGEST_STEP = 2**53
_FLAGS = {"true": 1.0, "false": 0.0}


@frozen(eq=False)
class Series:
    """One curve without its missing points: ``steps`` (n,) int64, strictly rising, and ``values`` (n,) float64."""

    name: str
    steps: np.ndarray
    values: np.ndarray


def _read_only(columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    return MappingProxyType(dict(columns))


@frozen(kw_only=True, eq=False)
class Curves:
    """Curves over common steps.

    ``step`` (n,) int64, strictly rising. ``columns`` maps a curve's name (``reward``, ``kl``, ``ratio``, ``entropy``,
    ``clip_fraction``, ``gradnorm``, ``update_norm``, ``collapse``, ``eval/NAME``) to (n,) float64, NaN where a point is
    missing. ``headers`` gives the spelling each came from; ``ignored`` are headers that were not read.
    """

    step: np.ndarray
    columns: Mapping[str, np.ndarray] = field(factory=dict, converter=_read_only)
    headers: Mapping[str, str] = field(factory=dict, converter=freeze)
    ignored: tuple[str, ...] = field(default=(), converter=tupled)

    def series(self, name: str) -> Series:
        """The curve of this name; without points where the log has none."""
        values = self.columns.get(name)
        if values is None:
            return Series(name, self.step[:0], np.empty(0))
        present = ~np.isnan(values)
        return Series(name, self.step[present], values[present])

    @property
    def evaluations(self) -> tuple[str, ...]:
        """Names of the task evaluations, in order."""
        return tuple(sorted(name for name in self.columns if name.startswith(EVALUATION)))


def read_curves(path: Path) -> Curves:
    """Curves from a CSV (``.csv``), JSONL (``.jsonl``, ``.ndjson``) or JSON (``.json``) log, one row a step.

    Columns that are no known curve are left out and listed in ``ignored``. A blank cell, null or NaN is a missing
    point. Raises InvalidInput, naming file and line, for an empty file, no step, a step that repeats or goes back,
    text where a number belongs, or a log in which nothing is known.
    """
    table = read_table(path)
    headers = chosen(table.headers)
    if STEP not in headers:
        raise InvalidInput(
            "no step column",
            where=str(path),
            hint=f"name one column {STEP!r}; also read as the step: {', '.join(SPELLINGS[STEP][1:])}",
        )
    if len(headers) == 1:
        raise InvalidInput(
            f"no curve among the columns {', '.join(table.headers)}",
            where=str(path),
            hint=f"name the curves {', '.join(name for name in SPELLINGS if name != STEP)} or {EVALUATION}NAME",
        )
    if not table.rows:
        raise InvalidInput("headers without rows", where=str(path), hint="export the log again, one row a step")
    used = set(headers.values())
    return Curves(
        step=_steps(table, headers[STEP]),
        columns={name: _column(table, name, header) for name, header in headers.items() if name != STEP},
        headers=headers,
        ignored=tuple(header for header in table.headers if header not in used),
    )


def _steps(table: Table, header: str) -> np.ndarray:
    found: list[int] = []
    for place, row in table.rows:
        value = _number(row.get(header), header, place, typed=table.typed)
        if not value.is_integer() or abs(value) > _LARGEST_STEP:  # NaN and infinity are no integer either
            raise InvalidInput(
                f"{header} is {row.get(header)!r}, not a whole number", where=place, hint="give every row its step"
            )
        step = int(value)
        if found and step == found[-1]:
            raise InvalidInput(
                f"{header} {step} appears twice", where=place, hint="merge the rows of one step into one row"
            )
        if found and step < found[-1]:
            raise InvalidInput(
                f"{header} goes back from {found[-1]} to {step}",
                where=place,
                hint="give one run, ordered by step; cut what was logged before a restart",
            )
        found.append(step)
    return np.array(found, dtype=np.int64)


def _column(table: Table, name: str, header: str) -> np.ndarray:
    flag = name == "collapse"
    values = [_number(row.get(header), header, place, typed=table.typed, flag=flag) for place, row in table.rows]
    return np.array(values, dtype=np.float64)


def _number(value: object, header: str, place: str, *, typed: bool, flag: bool = False) -> float:
    """The value as a float, NaN where it is missing; text only where not ``typed``, true and false only as a flag."""
    if value is None:
        return math.nan
    if isinstance(value, bool):
        if flag:
            return float(value)
    elif isinstance(value, int | float):
        return _float(value, header, place)
    elif isinstance(value, str) and not typed:
        text = value.strip().lower()
        if not text:
            return math.nan
        if flag and text in _FLAGS:
            return _FLAGS[text]
        if "_" not in text:  # float() reads 1_000
            return _float(text, header, place)
    raise _not_a_number(value, header, place)


def _float(value: int | float | str, header: str, place: str) -> float:
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise _not_a_number(value, header, place) from error


def _not_a_number(value: object, header: str, place: str) -> InvalidInput:
    return InvalidInput(
        f"{header} is {value!r}, not a number", where=place, hint="leave the cell blank where the value is missing"
    )
