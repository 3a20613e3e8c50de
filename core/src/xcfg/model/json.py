"""JSON values: the type, deep freezing and thawing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""None, bool, int, float, str, or a list, tuple or mapping of these with string keys."""


_SCALARS = (str, bool, int, float)
_MAPPINGS = (dict, MappingProxyType)


def freeze(value: Json) -> Json:
    """A copy no receiver can change: mappings become read-only views, lists become tuples."""
    if value is None or type(value) in _SCALARS:  # most values are, and asking for Mapping is slow
        return value
    if type(value) in _MAPPINGS or isinstance(value, Mapping):
        return MappingProxyType({str(key): freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Json) -> Json:
    """The plain dicts and lists that ``json.dumps`` accepts."""
    if value is None or type(value) in _SCALARS:
        return value
    if type(value) in _MAPPINGS or isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


def tupled(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values as a tuple: a converter whose type a checker can follow, which ``tuple`` itself is not."""
    return tuple(values)
