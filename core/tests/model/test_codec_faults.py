from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest
from attrs import field, frozen

from xcfg.errors import InvalidInput
from xcfg.model.codec import PathFault, StructureError, dotted, dump_json, load_json, structure, unknown, unstructure
from xcfg.model.json import Json, freeze


class Colour(StrEnum):
    RED = "red"


@frozen(kw_only=True)
class Part:
    size: int
    weight: float = 1.0


@frozen(kw_only=True)
class Whole:
    name: str
    parts: tuple[Part, ...] = ()
    by_name: Mapping[str, Part] = field(factory=dict, converter=freeze)
    pair: tuple[float, float] | None = None
    colour: Colour = Colour.RED
    on: bool = False
    free: Json = None
    counts: Mapping[str, tuple[int, ...]] = field(factory=dict, converter=freeze)


def faults(data: Any, cls: type = Whole) -> dict[str, str]:
    with pytest.raises(StructureError) as caught:
        structure(data, cls)
    return {dotted(item.path): item.message for item in caught.value.path_faults}


def test_a_whole_value_and_back() -> None:
    data = {
        "name": "x",
        "parts": [{"size": 1}, {"size": 2, "weight": 3}],
        "by_name": {"a.b": {"size": 3, "weight": 0.5}},
        "pair": [0, 1.5],
        "colour": "red",
        "on": True,
        "free": {"deep": [1, {"x": None}]},
        "counts": {"n": [1, 2]},
    }
    made = structure(data, Whole)
    assert made.parts[1] == Part(size=2, weight=3.0)
    assert made.by_name["a.b"].weight == 0.5
    assert made.colour is Colour.RED
    assert made.free["deep"][1]["x"] is None
    parts = [{"size": 1, "weight": 1.0}, {"size": 2, "weight": 3.0}]
    assert unstructure(made) == {**data, "parts": parts, "pair": [0.0, 1.5]}
    assert structure(load_json(dump_json(made)), Whole) == made


def test_every_fault_at_once_with_its_path() -> None:
    found = faults(
        {
            "nmae": "x",
            "parts": [{"size": "1"}, 3, {"size": 1, "wieght": 2}],
            "by_name": {"a.b": {"size": True}},
            "pair": [1],
            "colour": "blue",
            "on": 1,
            "counts": {"n": [1, 2.5], "m": 3},
        }
    )
    assert found == {
        "name": "this field is required",
        "nmae": "unknown field 'nmae', did you mean 'name'?",
        "parts.0.size": "expected int, got str '1'",
        "parts.1": "expected a mapping, got int '3'",
        "parts.2.wieght": "unknown field 'wieght', did you mean 'weight'?",
        "by_name.a.b.size": "expected int, got bool 'True'",
        "pair": "expected 2 values, got 1",
        "colour": "'blue' is not one of red",
        "on": "expected bool, got int '1'",
        "counts.n.1": "expected int, got float '2.5'",
        "counts.m": "expected a list, got int '3'",
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, "1", True, None])
def test_a_float_is_a_finite_number(value: Any) -> None:
    assert list(faults({"size": 1, "weight": value}, Part)) == ["weight"]


def test_scalars_are_not_coerced() -> None:
    assert faults({"name": 1}) == {"name": "expected str, got int '1'"}
    assert faults({"size": 1.0}, Part) == {"size": "expected int, got float '1.0'"}
    assert structure({"size": 1, "weight": 2}, Part).weight == 2.0


def test_only_unknown_names_point_at_the_key() -> None:
    with pytest.raises(StructureError) as caught:
        structure({"name": 1, 5: 2}, Whole)
    assert set(caught.value.path_faults) == {
        PathFault(("name",), "expected str, got int '1'"),
        PathFault((5,), "unknown field '5'", True),
    }
    assert isinstance(caught.value, InvalidInput)


def test_not_a_mapping_at_all() -> None:
    assert faults([]) == {"": "expected a mapping, got list '[]'"}


def test_what_was_frozen_cannot_be_changed() -> None:
    source = {"name": "x", "free": {"list": [1]}, "by_name": {}}
    made = structure(source, Whole)
    source["free"]["list"].append(2)
    assert made.free["list"] == (1,)
    with pytest.raises(TypeError):
        made.by_name["y"] = Part(size=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "a": 2}', "key 'a' appears twice"),
        ('{"b": {"a": 1, "a": 2}}', "key 'a' appears twice"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("1e400", "1e400 is beyond the range of a float"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("1" * 5000, "not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_json_is_strict(text: str | bytes, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_json(text, where="file")
    assert expected in str(caught.value) and caught.value.faults[0].where == "file"


def test_json_text_keeps_order_and_refuses_nan() -> None:
    assert dump_json({"b": (1, None), "a": "é"}) == '{"b": [1, null], "a": "é"}'
    with pytest.raises(ValueError):
        dump_json({"a": float("nan")})


def test_the_nearest_name_is_given_only_when_near() -> None:
    assert unknown("knob", "vlues", ["values"]) == "unknown knob 'vlues', did you mean 'values'?"
    assert unknown("knob", "zzz", ["values"]) == "unknown knob 'zzz'"
