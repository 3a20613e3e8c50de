"""The JSON Schema of an experiment file, for editors: from the classes, with the registered knobs' domains."""

from __future__ import annotations

import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from xcfg.model import experiment
from xcfg.model.experiment import CaseSpec, Experiment, OperatorSides
from xcfg.model.json import Json, thaw
from xcfg.model.kernel import OperatorChoice
from xcfg.model.knob import Constraint, Domain, Kind, Knob
from xcfg.planner.catalog import Catalog

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ASSIGNMENT = "aligned assignment"
_KINDS = {Kind.STR: "string", Kind.INT: "integer", Kind.FLOAT: "number", Kind.BOOL: "boolean"}


def experiment_schema(catalog: Catalog) -> dict[str, Json]:
    """Draft 2020-12 schema of ``xcfg.experiment/1``. Unknown fields and unknown knobs are errors."""
    knobs = catalog.knobs()
    walker = _Walker()
    walker.of(Experiment)
    classes = walker.definitions
    top = classes["Experiment"]["properties"]
    top["schema"] = {"const": experiment.SCHEMA}
    top["baseline"] = _by_knob(knobs, "value")
    top["axes"] = {"anyOf": [_by_knob(knobs, "values"), _axis_rows(knobs)]}
    classes[CaseSpec.__name__]["properties"]["set"] = _by_knob(knobs, "value")
    top["fixed"] = _by_knob(knobs, "value")
    top["linked"] = {"type": "object", "additionalProperties": _by_knob(knobs, "column")}
    top["aligned"] = _aligned(knobs)
    classes[_ASSIGNMENT] = _by_knob(knobs, "value")
    for part in ("when", "require"):
        classes[Constraint.__name__]["properties"][part] = _by_knob(knobs, "values")
    _add_operator_shorthand(classes)
    for name, knob in knobs.items():
        value = domain_schema(knob.domain)
        classes[_value_name(name)] = {**value, "description": knob.summary}
        classes[_values_name(name)] = {
            "type": "array",
            "items": {"$ref": f"#/$defs/{_value_name(name)}"},
            "minItems": 1,
            "uniqueItems": True,
        }
        classes[_column_name(name)] = {
            "type": "array",
            "items": {"$ref": f"#/$defs/{_value_name(name)}"},
            "minItems": 1,
        }
    root = classes.pop("Experiment")
    return {"$schema": _DIALECT, "$id": experiment.SCHEMA, "title": "xcfg experiment", **root, "$defs": classes}


def domain_schema(domain: Domain) -> dict[str, Json]:
    """Schema of one value: the normal values and the aliases a domain accepts."""
    if domain.values:
        accepted = [*domain.values, *(alias for alias in domain.aliases if alias not in domain.values)]
        return {"enum": [*accepted, None] if domain.optional else accepted}
    plain: dict[str, Json] = {"type": _KINDS[domain.kind]}
    if domain.minimum is not None:
        plain["minimum"] = domain.minimum
    if domain.maximum is not None:
        plain["maximum"] = domain.maximum
    more: list[dict[str, Json]] = [{"enum": list(domain.aliases)}] if domain.aliases else []
    more += [{"type": "null"}] if domain.optional else []
    return {"anyOf": [plain, *more]} if more else plain


def _value_name(knob: str) -> str:
    return f"value of {knob}"


def _values_name(knob: str) -> str:
    return f"values of {knob}"


def _column_name(knob: str) -> str:
    return f"column of {knob}"


def _aligned(knobs: Mapping[str, Knob]) -> dict[str, Json]:
    """Knob to what aligning it sets: knob to value again."""
    assignment = {"$ref": f"#/$defs/{_ASSIGNMENT}"}
    return {"type": "object", "properties": dict.fromkeys(knobs, assignment), "additionalProperties": False}


def _by_knob(knobs: Mapping[str, Knob], what: str) -> dict[str, Json]:
    properties = {name: {"$ref": f"#/$defs/{what} of {name}"} for name in knobs}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _axis_rows(knobs: Mapping[str, Knob]) -> dict[str, Json]:
    """``[{knob: K, values: [...]}]``, the values checked against the knob's domain."""
    rows = [
        {
            "type": "object",
            "properties": {"knob": {"const": name}, "values": {"$ref": f"#/$defs/{_values_name(name)}"}},
            "required": ["knob", "values"],
            "additionalProperties": False,
        }
        for name in knobs
    ]
    return {"type": "array", "items": {"anyOf": rows} if rows else False}


def _add_operator_shorthand(classes: dict[str, Json]) -> None:
    """A side of an operator may be the bare id of its backend."""
    choice = {"$ref": f"#/$defs/{OperatorChoice.__name__}"}
    sides = classes[OperatorSides.__name__]["properties"]
    for role in ("rollout", "training"):
        sides[role] = {"anyOf": [{"type": "string"}, choice, {"type": "null"}]}


class _Walker:
    """Collects one definition a class."""

    def __init__(self) -> None:
        self.definitions: dict[str, Json] = {}

    def of(self, tp: Any) -> dict[str, Json]:
        """Schema of a type."""
        if tp in _SCALARS:
            return {"type": _SCALARS[tp]}
        if tp is Any:
            return {}
        if isinstance(tp, type) and issubclass(tp, Enum):
            return {"enum": [item.value for item in tp]}
        if attrs.has(tp):
            return self._class(tp)
        origin, args = get_origin(tp), get_args(tp)
        if origin in (Union, types.UnionType):
            return {"anyOf": [{"type": "null"} if item is type(None) else self.of(item) for item in args]}
        if origin is tuple:
            return self._list(args)
        return {"type": "object", "additionalProperties": self.of(args[1])}

    def _list(self, args: tuple[Any, ...]) -> dict[str, Json]:
        if args[1:] == (Ellipsis,):
            return {"type": "array", "items": self.of(args[0])}
        return {"type": "array", "prefixItems": [self.of(item) for item in args], "minItems": len(args), "items": False}

    def _class(self, cls: type) -> dict[str, Json]:
        name = cls.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # a class that holds itself finds this and stops
            hints = get_type_hints(cls)
            fields = attrs.fields(cls)
            self.definitions[name] = {
                "type": "object",
                "properties": {item.name: self._field(item, hints[item.name]) for item in fields},
                "required": [item.name for item in fields if item.default is attrs.NOTHING],
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{name}"}

    def _field(self, item: Any, tp: Any) -> dict[str, Json]:
        schema = self.of(tp)
        plain = isinstance(item.default, str | int | float | bool) and item.default != ""
        return {**schema, "default": thaw(item.default)} if plain else schema
