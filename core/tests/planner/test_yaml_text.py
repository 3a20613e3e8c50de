from __future__ import annotations

import pytest

from xcfg.errors import InvalidInput
from xcfg.planner.document import value_problems
from xcfg.planner.yaml_text import parse_value, parse_yaml


def test_scalars_follow_yaml_1_2() -> None:
    text = "a: 1e-3\nb: no\nc: 012\nd: 0x1F\ne: ~\nf: true\ng: '1'\nh:\n"
    assert parse_yaml(text, "f").data == {
        "a": 0.001,
        "b": "no",
        "c": 12,
        "d": 31,
        "e": None,
        "f": True,
        "g": "1",
        "h": None,
    }


def test_positions_of_keys_and_values() -> None:
    positions = parse_yaml("top:\n  - {knob: x, vlues: [1, 22]}\n", "f").positions
    assert positions.find(("top",), True) == (1, 1)
    assert positions.find(("top", 0, "vlues"), True) == (2, 15)
    assert positions.find(("top", 0, "vlues", 1), False) == (2, 26)
    assert positions.find(("absent",), False) is None


def test_every_duplicate_key_is_named() -> None:
    document = parse_yaml("a: 1\nb: 2\na: 3\nb: 4\n", "f")
    assert [(item.mark, item.path) for item in document.problems] == [((3, 1), ("a",)), ((4, 1), ("b",))]
    assert document.data == {"a": 1, "b": 2}
    assert "first on line 1" in document.problems[0].message


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: &x [1]\nb: *x\n", 1, 4),
        ("a: {<<: {b: 1}}\n", 1, 5),
        ("a: !!python/object:os.system x\n", 1, 4),
        ("a: 2020-01-01\n", 1, 4),
        ("1: x\n", 1, 1),
        ("? [a]\n: b\n", 1, 3),
    ],
)
def test_what_is_not_plain_data_is_refused(text: str, line: int, column: int) -> None:
    problems = parse_yaml(text, "f").problems
    assert problems and problems[0].mark == (line, column)


def test_an_alias_to_an_ancestor_ends() -> None:
    assert parse_yaml("a: &x\n  b: *x\n", "f").problems


def test_nested_aliases_do_not_expand() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    assert len(parse_yaml("\n".join(rows), "f").problems) == 20


@pytest.mark.parametrize(
    ("text", "place"),
    [("a: [1\n", "f:2:1"), ("a: b: c\n", "f:1:5"), ("a: *x\n", "f:1:4"), ("a: 1\n---\nb: 2\n", "f:2:1")],
)
def test_broken_syntax_has_a_place(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_yaml(text, "f")
    assert caught.value.faults[0].where == place


@pytest.mark.parametrize("text", ["[" * 5000, "- " * 5000, "a: \x01\n", "%YAML 1.1\n---\na: no\n"])
def test_hostile_text_is_invalid_input(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_yaml(text, "f")


def test_values_json_cannot_carry() -> None:
    data = parse_yaml('a: .inf\nb: [.nan, 1e400]\nc: "\\ud800"\n', "f").data
    assert [item.path for item in value_problems(data)] == [("a",), ("b", 0), ("b", 1), ("c",)]


def test_a_value_of_the_command_line() -> None:
    assert parse_value("[bf16, 1e-3, true]", "o") == ["bf16", 0.001, True]
    with pytest.raises(InvalidInput, match=r"^o: "):
        parse_value(".nan", "o")
