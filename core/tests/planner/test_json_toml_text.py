from __future__ import annotations

import pytest

from xcfg.errors import InvalidInput
from xcfg.planner.document import value_problems
from xcfg.planner.json_text import parse_json
from xcfg.planner.toml_text import parse_toml


def test_json_positions() -> None:
    positions = parse_json('{\n  "a": [1, {"b": 2}],\n  "c": null}', "f").positions
    assert positions.find(("a",), True) == (2, 3)
    assert positions.find(("a", 1, "b"), False) == (2, 18)
    assert positions.find(("c",), False) == (3, 8)


def test_json_data() -> None:
    text = ' {"a": [], "b": {}, "c": "\\u00e9\\n", "d": -1.5e3, "e": [true, false, null]} '
    assert parse_json(text, "f").data == {"a": [], "b": {}, "c": "é\n", "d": -1500.0, "e": [True, False, None]}


def test_json_names_every_duplicate_and_keeps_the_first() -> None:
    document = parse_json('{"a": {"x": 1},\n "a": {"x": 2}, "b": 0, "b": 1}', "f")
    assert document.data == {"a": {"x": 1}, "b": 0}
    assert [item.mark for item in document.problems] == [(2, 2), (2, 25)]
    assert document.positions.find(("a", "x"), False) == (1, 13)


def test_json_infinities_are_problems() -> None:
    data = parse_json('{"a": NaN, "b": [1e400, -Infinity]}', "f").data
    assert [item.path for item in value_problems(data)] == [("a",), ("b", 0), ("b", 1)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,}', "f:1:9"),
        ("[1,]", "f:1:4"),
        ("[1", "f:1:3"),
        ('{"a" 1}', "f:1:6"),
        ("{a: 1}", "f:1:2"),
        ("[1] 2", "f:1:5"),
        ("", "f:1:1"),
        ('{"a": 1\n "b": 2}', "f:2:2"),
    ],
)
def test_json_syntax_errors_have_a_place(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_json(text, "f")
    assert caught.value.faults[0].where == place


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "1" * 5000 + "}"])
def test_json_beyond_measure_is_invalid_input(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_json(text, "f")


def test_toml_positions_are_those_of_the_nearest_key() -> None:
    text = 'name = "x"\n\n[axes]\n"rollout.dtype" = [\n  "fp32",\n  "bf16",\n]\n[[cases]]\nname = "a"\n'
    positions = parse_toml(text, "f").positions
    assert positions.find(("name",), False) == (1, 1)
    assert positions.find(("axes", "rollout.dtype"), True) == (4, 2)
    assert positions.find(("axes", "rollout.dtype", 1), False) == (4, 2)
    assert positions.find(("cases", 0, "name"), False) == (9, 1)
    assert positions.find(("cases", 1), False) is None


def test_toml_syntax_errors_have_a_place() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_toml('a = 1\nb = "x\n', "f")
    assert caught.value.faults[0].where == "f:2:7"
    with pytest.raises(InvalidInput):
        parse_toml("a = 1\na = 2\n", "f")


def test_toml_dates_and_infinities_are_problems() -> None:
    data = parse_toml("a = 2020-01-01\nb = inf\n", "f").data
    assert [item.path for item in value_problems(data)] == [("a",), ("b",)]
