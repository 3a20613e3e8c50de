"""Structuring of untrusted data into model values: every fault at once, each with its path."""

from __future__ import annotations

import difflib
import json
import math
import types
from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import (
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
)
from cattrs.gen import make_dict_structure_fn, override

from xcfg.errors import Fault, InvalidInput
from xcfg.model.json import Json, freeze, thaw

T = TypeVar("T")
Path = tuple[str | int, ...]


@attrs.frozen
class PathFault:
    """A fault at a path of keys and indices inside a document; ``at_key`` where the key itself is what is wrong."""

    path: Path
    message: str
    at_key: bool = False


def _scalar(kind: type) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _: Any) -> Any:
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return _as_float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"expected {kind.__name__}, got {_shown(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"a finite number is required, got {value}")
        return value

    return hook


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError("a finite number is required, this one is beyond the range of a float") from error


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {str(value)[:40]!r}"


def _enum(value: Any, kind: type[Enum]) -> Enum:
    try:
        return kind(value if isinstance(value, str) else None)
    except ValueError:
        names = ", ".join(str(item.value) for item in kind)
        raise ValueError(f"{value!r} is not one of {names}") from None


def _optional(tp: Any) -> bool:
    return get_origin(tp) in (Union, types.UnionType) and type(None) in get_args(tp)


Hook = Callable[[Any, Any], Any]


def _mapping(converter: cattrs.Converter) -> Callable[[Any], Hook]:
    def factory(tp: Any) -> Hook:
        inner: Any = (get_args(tp) or (str, Any))[1]
        plain: Any = dict[str, inner]
        structured = _frozen if inner is Any else converter.get_structure_hook(plain)

        def hook(value: Any, _: Any) -> Any:
            if not isinstance(value, Mapping):
                raise TypeError(f"expected a mapping, got {_shown(value)}")
            return structured(value, plain)

        return hook

    return factory


def _sequence(converter: cattrs.Converter) -> Callable[[Any], Hook]:
    def factory(tp: Any) -> Hook:
        args = get_args(tp)
        plain: Any = list[args[0] if args else Any]  # type: ignore[misc]
        structured = converter.get_structure_hook(plain)
        length = len(args) if len(args) > 1 and args[1] is not Ellipsis else None

        def hook(value: Any, _: Any) -> Any:
            if not isinstance(value, list | tuple):
                raise TypeError(f"expected a list, got {_shown(value)}")
            if length is not None and len(value) != length:
                raise ValueError(f"expected {length} values, got {len(value)}")
            return tuple(structured(list(value), plain))

        return hook

    return factory


def _maybe(converter: cattrs.Converter) -> Callable[[Any], Hook]:
    def factory(tp: Any) -> Hook:
        inner: Any = next(item for item in get_args(tp) if item is not type(None))
        structured = converter.get_structure_hook(inner)
        return lambda value, _: None if value is None else structured(value, inner)

    return factory


def _frozen(value: Any, _: Any) -> Any:
    return freeze(value)


@cache
def converter() -> cattrs.Converter:
    """The one converter: unknown keys forbidden, scalars not coerced."""
    made = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)

    def structure_class(cls: type) -> Callable[[Any, Any], Any]:
        fields: dict[str, Any] = {item.name: override(omit=False) for item in attrs.fields(cls)}
        inner: Callable[[Any, Any], Any] = make_dict_structure_fn(cls, made, _cattrs_forbid_extra_keys=True, **fields)

        def hook(value: Any, tp: Any) -> Any:
            if type(value) is cls:  # a reader may structure once what stands in many places
                return value
            if not isinstance(value, Mapping):
                raise TypeError(f"expected a mapping, got {_shown(value)}")
            return inner(value, tp)

        return hook

    made.register_structure_hook_factory(attrs.has, structure_class)
    for kind in (str, int, float, bool):
        made.register_structure_hook(kind, _scalar(kind))
    for base in (Enum, StrEnum):  # a StrEnum is a str too: without its own hook it would be let through unchecked
        made.register_structure_hook(base, _enum)
    made.register_structure_hook_func(lambda tp: tp is Any, _frozen)
    made.register_structure_hook_factory(_is_mapping, _mapping(made))
    made.register_structure_hook_factory(_is_tuple, _sequence(made))
    made.register_structure_hook_factory(_optional, _maybe(made))
    return made


def _is_mapping(tp: Any) -> bool:
    origin = get_origin(tp)
    return isinstance(origin, type) and issubclass(origin, Mapping) and origin is not dict


def _is_tuple(tp: Any) -> bool:
    origin: Any = get_origin(tp)
    return origin is tuple


def structure(data: Json, cls: type[T]) -> T:
    """The value of type ``cls`` in ``data``. Raises :class:`StructureError` with all faults and their paths."""
    try:
        return converter().structure(data, cls)
    except Exception as error:  # cattrs raises groups; anything a validator raises is a fault of the data
        faults = tuple(_walk(error, (), cls))
        raise StructureError(faults) from error


class StructureError(InvalidInput):
    """Data that does not have the shape of a model value; ``path_faults`` locate each fault."""

    def __init__(self, path_faults: tuple[PathFault, ...]) -> None:
        """Keep the paths so that a loader can add lines and columns."""
        self.path_faults = path_faults
        super().__init__(faults=[Fault(message=item.message, where=dotted(item.path)) for item in path_faults])


def dotted(path: Path) -> str:
    """``axes.rollout.dtype.0`` for a path of keys and indices."""
    return ".".join(str(part) for part in path)


def _walk(error: BaseException, path: Path, cls: Any) -> list[PathFault]:
    if isinstance(error, ClassValidationError):
        located, bare = error.group_exceptions()
        found = [fault for item, note in located for fault in _walk(item, (*path, note.name), note.type)]
        return found + [fault for item in bare for fault in _walk(item, path, error.cl)]
    if isinstance(error, IterableValidationError):
        pairs, bare = error.group_exceptions()
        found = [fault for item, note in pairs for fault in _walk(item, (*path, note.index), note.type)]
        return found + [fault for item in bare for fault in _walk(item, path, cls)]
    if isinstance(error, ForbiddenExtraKeysError):
        known = [item.name for item in attrs.fields(error.cl)]
        return [
            PathFault((*path, name), unknown("field", str(name), known), at_key=True)
            for name in sorted(error.extra_fields, key=str)
        ]
    if isinstance(error, KeyError):
        name = str(error.args[0])
        return [PathFault(path if path[-1:] == (name,) else (*path, name), "this field is required")]
    return [PathFault(path, str(error) or type(error).__name__)]


def unknown(what: str, name: str, known: list[str]) -> str:
    """``unknown field 'vlues', did you mean 'values'?``"""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"unknown {what} {name!r}" + (f", did you mean {near[0]!r}?" if near else "")


_PLAIN = (str, bool, int, float)


def unstructure(value: Any) -> Json:
    """Plain JSON of a model value; fields with ``init=False`` are left out."""
    kind: Any = type(value)
    if value is None or kind in _PLAIN:  # most values are, and asking for Mapping is slow
        return value
    if (names := _given(kind)) is not None:
        return {name: unstructure(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [unstructure(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): unstructure(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return value.value
    return thaw(value)


@cache
def _given(kind: Any) -> tuple[str, ...] | None:
    """Names of the fields that a model class is made from; None for any other class."""
    return tuple(item.name for item in attrs.fields(kind) if item.init) if attrs.has(kind) else None


def load_json(text: str | bytes, *, where: str = "") -> Json:
    """Strict JSON: duplicate keys, NaN and numbers beyond the float range are InvalidInput."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            names = [name for name, _ in items]
            twice = next(name for index, name in enumerate(names) if name in names[:index])
            raise InvalidInput(f"key {twice!r} appears twice in one object", where=where)
        return found

    def constant(name: str) -> Any:
        raise InvalidInput(f"{name} is not JSON: a finite number is required", where=where)

    def number(token: str) -> float:
        value = float(token)
        if not math.isfinite(value):
            raise InvalidInput(f"{token} is beyond the range of a float", where=where)
        return value

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=number)
    except RecursionError as error:
        raise InvalidInput("not JSON: nested too deeply", where=where) from error
    except ValueError as error:  # syntax, encoding, or an integer of more digits than Python converts
        raise InvalidInput(f"not JSON: {error}", where=where) from error


def dump_json(value: Any) -> str:
    """Strict JSON text of a model value or plain data, keys in the order given. Raises ValueError on NaN."""
    return json.dumps(unstructure(value), allow_nan=False, ensure_ascii=False)
