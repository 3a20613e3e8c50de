"""An axis of the cube: its values in order, and the labels that xarray shows for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

from attrs import frozen

from xcfg.model.ids import canonical
from xcfg.model.json import Json, thaw

_INT64 = 2**63
_EXACT_FLOAT = 2**53


@cache
def _scalar_key(kind: str, value: Json) -> str:
    # the type is part of the cache's key because True, 1 and 1.0 are equal in Python
    return canonical(value).decode()


def value_key(value: Json) -> str:
    """What makes two values one coordinate; as in case ids, 1.0 and 1 are one value and true is not 1."""
    if value is None or isinstance(value, str | int | float):
        return _scalar_key(type(value).__name__, value)
    return canonical(value).decode()


@cache
def _scalar_text(kind: str, value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def value_text(value: Json) -> str:
    """The JSON text stored for a value."""
    if value is None or isinstance(value, str | int | float):
        return _scalar_text(type(value).__name__, value)
    return json.dumps(thaw(value), ensure_ascii=False, allow_nan=False, sort_keys=True)


def coordinate_dtype(values: Sequence[Json]) -> str:
    """``bool``, ``int64`` or ``float64`` where all values are of that type, else ``str``."""
    if values and all(isinstance(value, bool) for value in values):
        return "bool"
    if not values or any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return "str"
    integers = [value for value in values if isinstance(value, int)]
    if len(integers) == len(values) and all(-_INT64 <= value < _INT64 for value in integers):
        return "int64"
    return "float64" if all(abs(value) <= _EXACT_FLOAT for value in integers) else "str"


class Places:
    """Where values lie on an axis; those that it does not have yet go behind its own, in the order they are met."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.values: list[Json] = []
        """The values met that the axis does not have."""
        self._known = {key: index for index, key in enumerate(keys)}
        self._met: dict[tuple[type, Json], int] = {}

    def of(self, value: Json) -> int:
        """The index of a value."""
        try:
            return self._met[value.__class__, value]
        except KeyError:
            found = self._met[value.__class__, value] = self._place(value)
            return found
        except TypeError:  # a mapping, which no table is looked up by
            return self._place(value)

    def _place(self, value: Json) -> int:
        key = value_key(value)
        if key not in self._known:
            self._known[key] = len(self._known)
            self.values.append(value)
        return self._known[key]


@frozen(kw_only=True)
class Axis:
    """Values in the order of the coordinate; ``dtype`` is that of the stored coordinate array."""

    name: str
    dtype: str
    values: tuple[Json, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """:func:`value_key` of each value."""
        return tuple(value_key(value) for value in self.values)

    def labels(self) -> list[Json]:
        """Coordinate values: the value itself, or text where types are mixed.

        A string is shown bare unless an earlier label reads the same (the string ``null`` after the value null); then
        it is shown as JSON, with its quotes. The exact values are in the attribute ``values`` of the coordinate.
        """
        if self.dtype != "str":
            return list(self.values)
        shown: list[str] = []
        for value in self.values:
            bare = value if isinstance(value, str) else value_text(value)
            shown.append(value_text(value) if bare in shown else bare)
        return list(shown)

    def extended(self, values: Sequence[Json]) -> Axis:
        """The axis with the values it does not have yet behind its own. Raises ValueError where the dtype changes."""
        known = set(self.keys)
        added = [value for value in values if value_key(value) not in known]
        if not added:
            return self
        joined = (*self.values, *added)
        if coordinate_dtype(joined) != self.dtype and self.dtype != "str":
            shown = ", ".join(value_text(value) for value in added)
            raise ValueError(f"axis {self.name} holds {self.dtype} coordinates and cannot take {shown}")
        return Axis(name=self.name, dtype=self.dtype, values=joined)
