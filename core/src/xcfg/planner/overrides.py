"""Dotted overrides of the command line: ``axes.rollout.dtype=[bfloat16,float32]``.

A path is walked along the types of an experiment. Inside a mapping whose keys contain dots (knob names) the longest
known key wins.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs
from attrs import frozen

from xcfg.errors import InvalidInput
from xcfg.model.codec import Path, dotted, unknown
from xcfg.model.experiment import Experiment
from xcfg.model.json import Json
from xcfg.planner.problem import Problem
from xcfg.planner.refused import explained
from xcfg.planner.yaml_text import parse_value

_KNOB_MAPPINGS = {"baseline", "axes", "fixed", "aligned", "set", "when", "require"}
_TABLES = {"linked", "aligned"}
"""Mappings whose entries are mappings of knobs again."""
_OPEN_MAPPINGS = {"operators"}


@frozen(kw_only=True)
class Override:
    """A value for one place of the experiment."""

    path: Path
    value: Json


def parse_override(text: str, data: Mapping[str, Json], knobs: Collection[str]) -> Override:
    """Read ``PATH=VALUE``. Raises InvalidInput where the path names no place of an experiment or the value is no YAML.

    ``data`` is the experiment as read so far: its cases, slices and lists can be addressed.
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise InvalidInput("an override has the form PATH=VALUE", where=f"override {text}")
    walk = _Walk(name, frozenset(knobs))
    return Override(path=walk.resolve(name, Experiment, data, ()), value=parse_value(value, f"override {name}"))


def apply_override(data: dict[str, Json], override: Override) -> None:
    """Set the value in ``data``, in place; mappings on the way are made where they are missing.

    Raises InvalidInput where the file has something else in the place of a mapping.
    """
    *parents, last = override.path
    target: Any = data
    for part in parents:
        if isinstance(target, dict) and target.get(part) is None:
            target[part] = {}
        target = target[part]
        if not isinstance(target, dict | list):
            raise InvalidInput(f"{part!r} is no mapping in the file", where=f"override {dotted(override.path)}")
    target[last] = override.value


class _Walk:
    def __init__(self, name: str, knobs: frozenset[str]) -> None:
        self.name = name
        self.knobs = knobs

    def resolve(self, rest: str, tp: Any, data: Json, path: Path) -> Path:
        """The path of ``rest`` below a value of type ``tp``, whose present content is ``data``."""
        if not rest:
            return path
        tp = _required(tp)
        if attrs.has(tp):
            return self._field(rest, tp, data, path)
        if get_origin(tp) is not None and issubclass(get_origin(tp), Mapping):
            return self._entry(rest, get_args(tp)[1], data, path)
        if get_origin(tp) is tuple:
            return self._item(rest, get_args(tp)[0], data, path)
        raise self._error(f"{dotted(path)} has no parts, {rest!r} leads nowhere")

    def _field(self, rest: str, tp: Any, data: Json, path: Path) -> Path:
        head, _, tail = rest.partition(".")
        hints = get_type_hints(tp)
        known = [item.name for item in attrs.fields(tp)]
        if head not in known:
            missing = Problem(path=(*path, head), message=unknown("field", head, known), at_key=True)
            said = explained(missing)
            raise self._error(said.message, said.hint)
        return self.resolve(tail, hints[head], _part(data, head), (*path, head))

    def _entry(self, rest: str, inner: Any, data: Json, path: Path) -> Path:
        present = list(data) if isinstance(data, Mapping) else []
        what, known = ("knob", {*present, *self.knobs}) if _of_knobs(path) else ("entry", {*present})
        if path[-1] in _OPEN_MAPPINGS:
            known.add(rest.partition(".")[0])
        found = [key for key in known if rest == key or rest.startswith(f"{key}.")]
        if not found:
            said = explained(Problem(path=(*path, rest), message=unknown(what, rest, sorted(known)), at_key=True))
            raise self._error(said.message, said.hint)
        key = max(found, key=len)
        return self.resolve(rest[len(key) + 1 :], inner, _part(data, key), (*path, key))

    def _item(self, rest: str, inner: Any, data: Json, path: Path) -> Path:
        items = data if isinstance(data, list) else []
        names = {str(item["name"]): index for index, item in enumerate(items) if _named(item)}
        places = {**{str(index): index for index in range(len(items))}, **names}
        found = [key for key in places if rest == key or rest.startswith(f"{key}.")]
        if not found:
            count = f"there are {len(items)}" if items else "there are none"
            raise self._error(f"{dotted(path)} has no item {rest.partition('.')[0]!r}, {count}")
        key = max(found, key=len)
        return self.resolve(rest[len(key) + 1 :], inner, items[places[key]], (*path, places[key]))

    def _error(self, message: str, hint: str = "") -> InvalidInput:
        return InvalidInput(message, where=f"override {self.name}", hint=hint)


def _of_knobs(path: Path) -> bool:
    """Whether the mapping at ``path`` has knobs as keys."""
    return path[-1] in _KNOB_MAPPINGS or (len(path) > 1 and path[-2] in _TABLES)


def _required(tp: Any) -> Any:
    """``T`` of ``T | None``."""
    if get_origin(tp) in (Union, types.UnionType):
        return next(item for item in get_args(tp) if item is not type(None))
    return tp


def _part(data: Json, key: str) -> Json:
    return data.get(key) if isinstance(data, Mapping) else None


def _named(item: Json) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("name"), str)
