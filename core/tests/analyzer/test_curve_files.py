"""Training logs as files: the three containers, the spellings, and everything that is refused."""

import json
import math

import numpy as np
import pytest

from xcfg.analyzer.curve_names import SPELLINGS, chosen
from xcfg.analyzer.curves import read_curves
from xcfg.errors import InvalidInput

RECORDS = [
    {"step": 1, "reward": 0.5, "actor/ppo_kl": 0.001, "eval/Math": None, "host": "a"},
    {"step": 3, "reward": None, "actor/ppo_kl": 0.002, "eval/Math": 0.25, "host": "b"},
    {"step": 7, "reward": 0.75, "actor/ppo_kl": math.nan, "eval/Math": 0.5, "host": "c"},
]


def written(path, kind):
    if kind == "csv":
        cells = [["" if value is None else str(value) for value in row.values()] for row in RECORDS]
        path = path / "log.csv"
        path.write_text("\n".join(",".join(row) for row in [list(RECORDS[0]), *cells]) + "\n")
    elif kind == "jsonl":
        path = path / "log.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in RECORDS))
    elif kind == "records":
        path = path / "log.json"
        path.write_text(json.dumps(RECORDS, indent=1))
    else:
        path = path / "log.json"
        path.write_text(json.dumps({name: [row[name] for row in RECORDS] for name in RECORDS[0]}))
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "records", "columns"])
def test_each_container_gives_the_same_curves(tmp_path, kind):
    curves = read_curves(written(tmp_path, kind))
    assert curves.step.tolist() == [1, 3, 7]
    assert set(curves.columns) == {"reward", "kl", "eval/Math"}
    np.testing.assert_array_equal(curves.columns["reward"], [0.5, np.nan, 0.75])
    assert curves.series("reward").steps.tolist() == [1, 7]
    assert curves.series("kl").values.tolist() == [0.001, 0.002]
    assert curves.series("gradnorm").steps.tolist() == []
    assert curves.evaluations == ("eval/Math",)
    assert curves.headers["kl"] == "actor/ppo_kl"
    assert curves.ignored == ("host",)


def test_jsonl_rows_may_lack_columns_and_lines_may_be_blank(tmp_path):
    path = tmp_path / "log.ndjson"
    path.write_text('{"step": 0, "kl": 1}\n\n{"step": 1, "grad_norm": 2.5}\n')
    curves = read_curves(path)
    np.testing.assert_array_equal(curves.columns["kl"], [1.0, np.nan])
    np.testing.assert_array_equal(curves.columns["gradnorm"], [np.nan, 2.5])


@pytest.mark.parametrize(
    ("curve", "header"),
    [(curve, header) for curve, headers in SPELLINGS.items() for header in headers],
)
def test_each_spelling_means_its_curve(curve, header):
    assert chosen(["other", header])[curve] == header
    assert chosen([header.upper().replace("/", ".")])[curve] == header.upper().replace("/", ".")


def test_no_spelling_means_two_curves():
    every = [header for headers in SPELLINGS.values() for header in headers]
    assert len(every) == len(set(every))


def test_of_two_columns_of_one_curve_the_preferred_is_read_and_the_other_named(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("Step,objective/kl,KL,eval.gsm,eval/gsm\n0,5,1,0.5,0.25\n")
    curves = read_curves(path)
    assert curves.columns["kl"].tolist() == [1.0]
    assert curves.columns["eval/gsm"].tolist() == [0.5]
    assert curves.ignored == ("objective/kl", "eval/gsm")


def test_the_collapse_flag_may_be_true_or_false(tmp_path):
    for name, text in (
        ("a.csv", "step,collapse\n0,False\n1,true\n2,\n"),
        ("b.json", '{"step": [0, 1, 2], "collapse": [false, true, null]}'),
        ("c.csv", "step,collapse\n0,0\n1,1\n2,nan\n"),
    ):
        path = tmp_path / name
        path.write_text(text)
        np.testing.assert_array_equal(read_curves(path).columns["collapse"], [0.0, 1.0, np.nan])


def test_infinity_is_a_number(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,grad_norm\n0,1e3\n1,inf\n")
    assert read_curves(path).columns["gradnorm"].tolist() == [1000.0, math.inf]


@pytest.mark.parametrize(
    ("name", "text", "where", "message"),
    [
        ("a.csv", "", "a.csv", "empty"),
        ("a.csv", "\n \n", "a.csv", "empty"),
        ("a.csv", "step,kl\n", "a.csv", "without rows"),
        ("a.csv", "time,kl\n0,1\n", "a.csv", "no step column"),
        ("a.json", "[]", "a.json", "no step column"),
        ("a.csv", "step,loss\n0,1\n", "a.csv", "no curve among the columns step, loss"),
        ("a.csv", "step,kl\n0,1\n0,2\n", "a.csv line 3", "step 0 appears twice"),
        ("a.csv", "step,kl\n0,1\n5,1\n4,2\n", "a.csv line 4", "goes back from 5 to 4"),
        ("a.csv", "step,kl\n,1\n", "a.csv line 2", "not a whole number"),
        ("a.csv", "step,kl\n0.5,1\n", "a.csv line 2", "not a whole number"),
        ("a.csv", "step,kl\n0,1\nnan,1\n", "a.csv line 3", "not a whole number"),
        ("a.csv", "step,kl\n0,low\n", "a.csv line 2", "kl is 'low', not a number"),
        ("a.csv", "step,kl\n0,1_0\n", "a.csv line 2", "not a number"),
        ("a.csv", "step,kl\n0,true\n", "a.csv line 2", "not a number"),
        ("a.csv", "step,kl\n0,1,2\n", "a.csv line 2", "3 cells under 2 headers"),
        ("a.csv", "step,kl,kl\n0,1,2\n", "a.csv line 1", "'kl' appears twice"),
        ("a.csv", 'step,kl\n0,"1\n', "a.csv line", "not CSV"),
        ("a.jsonl", '{"step": 0, "kl": 1}\n{"step": 1, "kl"', "a.jsonl line 2", "not JSON"),
        ("a.jsonl", '{"step": 0, "kl": 1}\n[1]', "a.jsonl line 2", "expected an object"),
        ("a.jsonl", '{"step": 0, "kl": "0.5"}', "a.jsonl line 1", "not a number"),
        ("a.jsonl", '{"step": 0, "kl": true}', "a.jsonl line 1", "not a number"),
        ("a.jsonl", '{"step": 0, "kl": 1, "kl": 2}', "a.jsonl line 1", "'kl' appears twice"),
        ("a.json", '{"step": [0, 1], "kl": [1]}', "a.json", "unequal lengths"),
        ("a.json", '{"step": 0, "kl": 1}', "a.json", "is not a list"),
        ("a.json", '[\n{"step": 0, "kl": 1},\n{"step": 1', "a.json", "line 3"),
        ("a.json", '[{"step": 0, "kl": 1}, {"step": 1, "kl": []}]', "a.json record 1", "not a number"),
        ("a.json", '[{"step": 0, "kl": 1' + "0" * 5000 + "}]", "a.json", "not JSON"),
        ("a.parquet", "x", "a.parquet", "*.parquet"),
    ],
)
def test_what_is_refused_is_named_with_its_place(tmp_path, name, text, where, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_curves(path)
    fault = caught.value.faults[0]
    assert fault.where.startswith(str(tmp_path / where))
    assert message in fault.message
    assert fault.hint


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(InvalidInput, match=r"none\.csv"):
        read_curves(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"step,kl\n0,\xff\xfe\n")
    with pytest.raises(InvalidInput, match=r"bytes\.csv"):
        read_curves(tmp_path / "bytes.csv")
