from __future__ import annotations

import numpy as np
import pytest

from xcfg.cube.column import Numbers, coded
from xcfg.cube.expression import parse
from xcfg.cube.query import query
from xcfg.cube.writer import commit
from xcfg.errors import InvalidInput


@pytest.fixture(scope="module")
def path(tmp_path_factory, build, small):
    outcomes = build.all_passed(small)
    outcomes[3] = build.failed(small.cases[3])
    path = tmp_path_factory.mktemp("query") / "cube.zarr"
    commit(path, small, outcomes[:-1], build.attributes)
    return path


def names(rows):
    return [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("status == fail", ["bfloat16-2-true", "bfloat16-8-false"]),
        ("status == not_run", ["bfloat16-8-true"]),
        ("max_abs_dlogp > 1", ["bfloat16-2-true", "bfloat16-8-false"]),
        ("max_abs_dlogp >= 1.0 and max_abs_dlogp <= 1e0", ["bfloat16-2-false"]),
        ("max_abs_dlogp == null", ["float32-2-true", "bfloat16-8-true"]),
        ("rollout.dtype == float32 and batch.size == 8", ["float32-8-false", "float32-8-true"]),
        ("rollout.dtype == 'float32' and batch.size in [8, 99]", ["float32-8-false", "float32-8-true"]),
        ('batch.size == "8"', []),
        ("execution.prefix_cache and batch.size < 2", ["float32-1-true", "bfloat16-1-true"]),
        ("execution.prefix_cache == 1", []),
        ("not (status in [pass, fail])", ["float32-2-true", "bfloat16-8-true"]),
        ("status not in [pass, fail]", ["float32-2-true", "bfloat16-8-true"]),
        ("observed.batch.size == 8 and within_baseline_row == true", ["float32-8-false"]),
        ("observed.training.batch.size != requested.rollout.batch.size", ["float32-2-true"]),
        ("reason == 'worker died'", ["float32-2-true"]),
        ("status == scorer_error or status == not_run and batch.size == 1", ["float32-2-true"]),
    ],
)
def test_conditions(path, where, expected):
    assert names(query(path, where, ["name"])) == expected


def test_rows_hold_what_is_selected_and_null_for_nan(path, small):
    rows = query(path, "status in [scorer_error]", ["case_id", "status", "max_abs_dlogp", "threshold", "batch.size"])
    assert rows == [
        {
            "case_id": small.cases[3].id,
            "status": "scorer_error",
            "max_abs_dlogp": None,
            "threshold": None,
            "batch.size": 2,
        }
    ]
    row = query(path, f"case_id == '{small.cases[4].id}'", [])[0]
    assert row["max_abs_dlogp"] == 0.5 and row["threshold"] == 1.0 and row["execution.prefix_cache"] is False
    assert row["within_baseline_row"] is True and row["active_tokens"] == 6 and row["dtype"] == "bfloat16"
    assert len(query(path)) == 12


@pytest.mark.parametrize(
    ("where", "column", "message"),
    [
        ("statu == fail", 1, "did you mean 'status'"),
        ("status == fial", 11, "did you mean 'fail'"),
        ("status == fail and rollout.dtyp == float32", 20, "did you mean 'rollout.dtype'"),
        ("status = fail", 8, "=="),
        ("status == 'fail", 11, "does not end"),
        ("status ==", 10, "expected"),
        ("(status == fail", 16, "expected"),
        ("status == fail status", 16, "not expected"),
        ("batch.size in 8", 15, "'[' is expected"),
        ("batch.size in [8", 17, "']' is expected"),
        ("1 < batch.size < 8", 16, "not expected"),
        ("status == __import__('os')", 11, "unknown status"),
        ("max_abs_dlogp > 1 && status == fail", 19, "and"),
        ("(" * 200, 101, "deeper"),
    ],
)
def test_faults_name_the_column(path, where, column, message):
    with pytest.raises(InvalidInput) as caught:
        query(path, where, [])
    assert f"column {column}:" in str(caught.value)
    assert message in str(caught.value)


def test_an_unknown_selection_names_the_nearest(path):
    with pytest.raises(InvalidInput, match="did you mean 'max_abs_dlogp'"):
        query(path, "", ["max_abs_dlog"])


def test_only_fields_of_the_condition_are_read():
    condition = parse("a.b > 1 or c == x", ["a.b", "c", "d"])
    assert condition.names == {"a.b", "c"}
    columns = {"a.b": coded([0, None, "2", 2]), "c": coded(["x", "y", None, None])}
    assert condition.holds(columns, 4).tolist() == [True, False, False, True]


VALUES = [None, True, False, 0, 1, 1.0, -2, 0.5, 2**60, "x", "1", "", {"rollout": 1}]
SIGNS = ["==", "!=", "<", "<=", ">", ">="]


def said(left, sign, right):
    """The rule of the language, spelt out again: true is not 1, what differs in type is neither equal nor ordered."""
    kinds = [
        "bool" if isinstance(value, bool) else "number" if isinstance(value, int | float) else type(value).__name__
        for value in (left, right)
    ]
    alike = kinds[0] == kinds[1]
    if sign in ("==", "!="):
        return (alike and left == right) is (sign == "==")
    if not alike or kinds[0] not in ("number", "str"):
        return False
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign]


def test_comparing_columns_is_comparing_their_values():
    for sign in SIGNS:
        for value in VALUES:
            assert coded(VALUES).compared(sign, value).tolist() == [said(own, sign, value) for own in VALUES]
            condition = parse(f"a {sign} b", ["a", "b"])
            pair = {"a": coded(VALUES), "b": coded([value] * len(VALUES))}
            assert condition.holds(pair, len(VALUES)).tolist() == [said(own, sign, value) for own in VALUES]


@pytest.mark.parametrize("numbers", [[0.5, float("nan"), -2.0, 1.0], [1, 2**60, 0, -5]])
def test_comparing_numbers_is_comparing_their_values(numbers):
    column = Numbers(values=np.array(numbers))
    alone = [None if number != number else number for number in numbers]
    assert column.at(np.arange(4)) == alone
    for sign in SIGNS:
        for value in [*VALUES, 10**400, -(10**400)]:
            assert column.compared(sign, value).tolist() == [said(own, sign, value) for own in alone], (sign, value)


def test_a_literal_may_stand_on_either_side():
    for sign, mirrored in zip(SIGNS, ["==", "!=", ">", ">=", "<", "<="], strict=True):
        columns = {"a": Numbers(values=np.array([0.0, 1.0, 2.0, np.nan]))}
        one, other = parse(f"1 {sign} a", ["a"]), parse(f"a {mirrored} 1", ["a"])
        assert one.holds(columns, 4).tolist() == other.holds(columns, 4).tolist()
