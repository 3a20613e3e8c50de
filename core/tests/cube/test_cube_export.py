from __future__ import annotations

import csv
import io
import json

import pytest
from attrs import evolve

from xcfg.cube.export import case_table, column_type, token_table
from xcfg.cube.formats import FORMATS
from xcfg.cube.reader import open_cube
from xcfg.cube.writer import commit
from xcfg.errors import InvalidInput


@pytest.fixture(scope="module")
def cube(tmp_path_factory, build, small):
    outcomes = build.all_passed(small)
    outcomes[3] = build.failed(small.cases[3])
    path = tmp_path_factory.mktemp("export") / "cube.zarr"
    commit(path, small, outcomes[:-1], build.attributes)
    return open_cube(path)


def written(table, form):
    stream = io.BytesIO()
    return FORMATS[form](table, stream), stream.getvalue()


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["a", None], "string"),
        ([None, None], "string"),
        ([True, None, False], "bool"),
        ([1, None, 2], "int64"),
        ([1, 0.5], "float64"),
        ([True, 1], "json"),
        (["a", 1], "json"),
        ([{"rollout": 1}], "json"),
        ([2**63], "json"),
    ],
)
def test_the_type_of_a_column(values, wanted):
    assert column_type(values) == wanted


def test_cases_as_csv(cube):
    table = case_table(cube, "batch.size == 8", ["name", "batch.size", "max_abs_dlogp", "execution.prefix_cache"])
    count, data = written(table, "csv")
    # cases are numbered in the order of the product; number n has max_abs_dlogp n / 8, the last was not run
    assert data.decode().splitlines() == [
        "name,batch.size,max_abs_dlogp,execution.prefix_cache",
        "float32-8-false,8,0.5,false",
        "float32-8-true,8,0.625,true",
        "bfloat16-8-false,8,1.25,false",
        "bfloat16-8-true,8,null,true",
    ]
    assert count == 4


def test_tokens_of_the_selected_cases(cube, small):
    table = token_table(cube, "batch.size == 1")
    count, data = written(table, "json")
    rows = json.loads(data)["rows"]
    # four cases of six tokens: case n has ids 100 n + (0..5), logprobs -1 - n and -1.5 - n, three tokens a sequence
    numbers = (0, 1, 6, 7)
    assert count == len(rows) == 24
    assert [row["token_id"] for row in rows] == [100 * number + at for number in numbers for at in range(6)]
    assert [row["case_id"] for row in rows] == [small.cases[number].id for number in numbers for _ in range(6)]
    assert {(row["rollout_logp"], row["train_logp"]) for row in rows} == {(-1.0 - n, -1.5 - n) for n in numbers}
    assert [(row["sequence"], row["position"]) for row in rows[:6]] == [
        ("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2),
    ]  # fmt: skip
    assert [row["train_rank"] for row in rows[:6]] == [0, 1, 0, 1, 0, 1]


def test_a_case_without_tokens_gives_no_row(cube):
    assert token_table(cube, "status in [scorer_error, not_run]").empty
    assert case_table(cube, "max_abs_dlogp > 1000").empty


def test_fields_of_the_case_stand_beside_the_tokens(cube):
    table = token_table(cube, "name == float32-1-true", ["rollout.dtype", "token_id", "max_abs_dlogp"])
    rows = list(csv.DictReader(io.StringIO(written(table, "csv")[1].decode())))
    assert rows[0] == {"rollout.dtype": "float32", "token_id": "100", "max_abs_dlogp": "0.125"}
    with pytest.raises(InvalidInput, match="did you mean 'max_abs_dlogp'"):
        token_table(cube, "", ["max_abs_dlog"])


def test_parquet_keeps_types_and_nulls(cube):
    parquet = pytest.importorskip("pyarrow.parquet")
    names = ["case_id", "batch.size", "execution.prefix_cache", "max_abs_dlogp", "dtype"]
    count, data = written(case_table(cube, "", names), "parquet")
    found = parquet.read_table(io.BytesIO(data))
    assert count == found.num_rows == 12
    assert [str(field.type) for field in found.schema] == ["string", "int64", "bool", "double", "string"]
    assert found["max_abs_dlogp"].to_pylist() == [number / 8 if number not in (3, 11) else None for number in range(12)]
    _, data = written(token_table(cube), "parquet")
    tokens = parquet.ParquetFile(io.BytesIO(data))
    assert tokens.metadata.num_rows == 10 * 6 and tokens.num_row_groups == 10
    assert str(tokens.schema_arrow.field("rollout_logp").type) == "float"


def test_a_logprob_that_is_not_finite_is_null(tmp_path, build, small):
    outcome = build.passed(small.cases[0], 0)
    values = outcome.tokens.train_logp.copy()
    values[1] = float("nan")
    values[2] = float("-inf")
    path = tmp_path / "cube.zarr"
    commit(path, small, [evolve(outcome, tokens=evolve(outcome.tokens, train_logp=values))], build.attributes)
    rows = json.loads(written(token_table(open_cube(path)), "json")[1])["rows"]
    assert [row["train_logp"] for row in rows] == [-1.5, None, None, -1.5, -1.5, -1.5]
