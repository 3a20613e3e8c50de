"""The values of one field for every case, kept so that a comparison looks at each distinct value once."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from attrs import frozen

from xcfg.cube.grid import Values
from xcfg.model.json import Json

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def number(value: Json) -> bool:
    """Whether a value is a number; true is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Json, right: Json) -> bool:
    """Equality of values: those of different types are never equal, except that 1 is 1.0."""
    if number(left) and number(right):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Json, Json], bool]:
    def judge(left: Json, right: Json) -> bool:
        texts = isinstance(left, str) and isinstance(right, str)
        return (texts or (number(left) and number(right))) and bool(compare(left, right))

    return judge


ORDER: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}
"""What each comparison says of two values; values of different types are never ordered."""

_ARRAYS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Column(Protocol):
    """One JSON value a case."""

    def compared(self, sign: str, value: Json) -> Mask:
        """For which cases the comparison of the value with another one holds."""

    def at(self, cases: Values) -> list[Json]:
        """The values of some cases."""


@frozen(kw_only=True, eq=False)
class Coded:
    """Few distinct ``values``; ``codes`` (cases,) says which of them each case has."""

    values: Sequence[Json]
    codes: Values

    def compared(self, sign: str, value: Json) -> Mask:
        """Judges each distinct value."""
        judge = ORDER[sign]
        return np.array([judge(own, value) for own in self.values], dtype=bool)[self.codes]

    def at(self, cases: Values) -> list[Json]:
        """The values of some cases."""
        return [self.values[code] for code in self.codes[cases].tolist()]


@frozen(kw_only=True, eq=False)
class Numbers:
    """A number for each case, (cases,) of any numeric dtype; NaN is no value."""

    values: Values

    def compared(self, sign: str, value: Json) -> Mask:
        """Judges all at once; NaN compares as null does."""
        absent = np.isnan(self.values)
        if not number(value):
            return np.where(absent, ORDER[sign](None, value), sign == "!=")
        bound = value
        if isinstance(value, int) and abs(value) >= 2**1023:  # beyond what an array compares with
            bound = math.inf if value > 0 else -math.inf
        return np.where(absent, sign == "!=", _ARRAYS[sign](self.values, bound))

    def at(self, cases: Values) -> list[Json]:
        """The values of some cases; None for NaN."""
        return [None if found != found else found for found in self.values[cases].tolist()]


def coded(values: Sequence[Json]) -> Coded:
    """A column of texts or other values that differ from case to case."""
    return Coded(values=values, codes=np.arange(len(values)))
