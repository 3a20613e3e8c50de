"""Whether descriptors hold what their fields are declared to hold.

attrs checks no types. A number where a text belongs would pass unnoticed until some command sorts or prints the
descriptors of all plugins, and then that command would fail for everybody.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from xcfg.model.codec import unknown
from xcfg.plugin.raised import shown

_SCALARS = (str, bool, int, float)


def misfits(value: Any) -> Iterator[str]:
    """A sentence for each field of a descriptor, also of values inside it, that is not of its declared type."""
    kind: Any = type(value)
    for name, declared, plain in _fields(kind):
        found = getattr(value, name)
        if plain and type(found) is declared:  # most are, of hundreds of descriptors whenever a command starts
            continue
        yield from _misfits(found, declared, name)


@cache
def _fields(cls: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Name and type of each field, and whether its type says all: float has NaN, and attrs looks into nothing."""
    hints = get_type_hints(cls)
    declared = [(item.name, hints[item.name]) for item in attrs.fields(cls)]
    return tuple((name, kind, kind is not float and not attrs.has(kind)) for name, kind in declared)


def _misfits(value: Any, kind: Any, where: str) -> Iterator[str]:
    origin: Any = get_origin(kind)
    if kind is Any:
        if not _is_json(value):
            yield f"{where} must be JSON, got {shown(value)}"
    elif origin in (Union, types.UnionType):
        inner = [item for item in get_args(kind) if item is not type(None)]
        if value is not None:
            yield from _misfits(value, inner[0] if len(inner) == 1 else Any, where)
    elif origin is tuple:
        yield from _tuple_misfits(value, get_args(kind), where)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from _mapping_misfits(value, get_args(kind)[1], where)
    elif issubclass(kind, Enum):
        yield from _member_misfits(value, kind, where)
    elif not _is(value, kind):
        yield f"{where} must be {kind.__name__}, got {shown(value)}"
    elif attrs.has(kind):
        yield from (f"{where}.{fault}" for fault in misfits(value))


def _tuple_misfits(value: Any, kinds: tuple[Any, ...], where: str) -> Iterator[str]:
    endless = len(kinds) == 2 and kinds[1] is Ellipsis
    if not isinstance(value, tuple | list) or not (endless or len(value) == len(kinds)):
        yield f"{where} must be a list{'' if endless else f' of {len(kinds)}'}, got {shown(value)}"
        return
    for index, item in enumerate(value):
        yield from _misfits(item, kinds[0] if endless else kinds[index], f"{where}[{index}]")


def _mapping_misfits(value: Any, kind: Any, where: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{where} must be a mapping, got {shown(value)}"
        return
    for name, item in value.items():
        yield from _misfits(item, kind, f"{where}.{name}")


def _member_misfits(value: Any, kind: type[Enum], where: str) -> Iterator[str]:
    """A text that equals a member is none: it has no ``value`` of its own."""
    if isinstance(value, kind):
        return
    members = {item.value: f"{kind.__name__}.{item.name}" for item in kind}
    if not isinstance(value, str):
        yield f"{where} must be {' or '.join(members.values())}, got {shown(value)}"
    elif value in members:
        yield f"{where} must be {members[value]}, not the text {value!r}"
    else:
        yield f"{where}: {unknown(kind.__name__, value, list(members))}"


def _is(value: Any, kind: Any) -> bool:
    if isinstance(value, bool) and kind is not bool:
        return False
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, kind)


def _is_json(value: Any) -> bool:
    if value is None or isinstance(value, _SCALARS):
        return not isinstance(value, float) or math.isfinite(value)
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    return isinstance(value, list | tuple) and all(_is_json(item) for item in value)
