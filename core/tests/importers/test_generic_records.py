"""The generic layout, a record a row: every field by hand, and every field of a wrong kind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from xcfg.importers.formats import jsonl, parquet
from xcfg.importers.generic import GenericImporter
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

FULL = {
    "id": 12,
    "prompt_ids": [9, 8, 7],
    "response_ids": [1, 2],
    "logprobs": [-0.5, None],
    "mask": [1, 0],
    "position_ids": [3, 4],
    "rank": 3,
    "weight_version": ["v1", 2],
    "top_logprobs": [{"1": -0.5, "40": -1.5, "41": None}, None],
    "temperature": 1,
    "top_p": 0.9,
    "top_k": 50,
    "min_p": 0.0,
    "logprobs_mode": "raw_logprobs",
    "dtype": "torch.bfloat16",
    "reward": {"ignored": True},
}
LEAST = {"id": "a", "response_ids": [1, 2], "logprobs": [-0.5, -1.0]}


def _records(*fields: dict[str, object]) -> list[Record]:
    rows = [Row(f"f.jsonl line {number}", held) for number, held in enumerate(fields, 1)]
    return list(GenericImporter().records(rows, Role.TRAINING))


def test_a_full_record(write) -> None:
    rows = jsonl.read(write("f.jsonl", json.dumps(FULL)))
    (record,) = GenericImporter().records(rows, Role.ROLLOUT)
    assert record.id == "12"
    assert record.prompt_ids.tolist() == [9, 8, 7]
    assert record.response_ids.tolist() == [1, 2]
    assert record.logprobs.dtype == np.float64
    np.testing.assert_array_equal(record.logprobs, [-0.5, np.nan])
    assert record.mask.tolist() == [True, False]
    assert record.position_ids.tolist() == [3, 4]
    assert record.rank == 3
    assert record.weight_versions == ("v1", "2")
    assert record.top_logprobs == ({1: -0.5, 40: -1.5}, {})
    expected = {"temperature": 1.0, "top_p": 0.9, "top_k": 50, "min_p": 0.0, "logprobs_mode": "raw_logprobs"}
    assert dict(record.semantics) == expected
    assert record.dtype == "bfloat16"
    assert record.place == "f.jsonl line 1"
    assert record.assumed == ()


@pytest.mark.parametrize("absent", [{}, dict.fromkeys(FULL.keys() - LEAST.keys())])
def test_what_is_absent_or_null_stays_unknown(absent: dict[str, object]) -> None:
    (record,) = _records({**absent, **LEAST})
    assert record.id == "a"
    assert (record.mask, record.prompt_ids, record.position_ids, record.rank) == (None, None, None, None)
    assert (record.weight_versions, dict(record.semantics), record.top_logprobs, record.dtype) == ((), {}, None, "")


def test_lengths_that_disagree_are_left_for_the_comparison() -> None:
    (record,) = _records({**LEAST, "logprobs": [-1.0], "mask": [1, 1, 1]})
    assert [len(record.response_ids), len(record.logprobs), len(record.mask)] == [2, 1, 3]


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("bf16", "bfloat16"),
        ("BFloat16", "bfloat16"),
        ("torch.float16", "float16"),
        ("half", "float16"),
        ("fp32", "float32"),
        ("torch.half", "float16"),
        ("fp8", "float8_e4m3fn"),
        ("float8_e5m2", "float8_e5m2"),
        ("int4", "int4"),
    ],
)
def test_dtypes_have_one_name(written: str, normal: str) -> None:
    assert _records({**LEAST, "dtype": written})[0].dtype == normal


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", None, "field 'id' is null"),
        ("id", 1.5, "id is float 1.5, not an integer"),
        ("id", True, "id is bool True, not an integer"),
        ("id", "\udc00", "id is the text '\\udc00', which holds half a character (a lone surrogate)"),
        ("response_ids", [1, -100], "response_ids[1] is -100, not a token id"),
        ("logprobs", ["-0.5", 1], "logprobs[0] is the text '-0.5', not a number or null"),
        ("mask", [1, 3], "mask[1] is 3, not a boolean, 0 or 1"),
        ("rank", "0", "rank is the text '0', not an integer"),
        ("weight_version", [1, None], "weight_version is null, not an integer"),
        ("temperature", "1", "temperature is the text '1', not a number"),
        ("temperature", float("nan"), "temperature is nan, not a finite number"),
        ("top_k", 1.0, "top_k is float 1.0, not an integer"),
        ("dtype", 16, "dtype is int 16, not text"),
        ("logprobs_mode", ["raw"], "logprobs_mode is a list of 1, not text"),
        ("top_logprobs", {"1": -0.5}, "top_logprobs is not a list with one object a response token"),
        ("top_logprobs", [-0.5], "top_logprobs[0] is not an object of token id and logprob"),
        ("top_logprobs", [{"the": -0.5}], "top_logprobs[0] has the key 'the', not a token id"),
        ("top_logprobs", [{"-1": -0.5}], "top_logprobs[0] has the key '-1', not a token id"),
        ("top_logprobs", [{"1": -0.5, "01": -0.5}], "top_logprobs[0] lists token 1 twice"),
        ("top_logprobs", [{"1": "x"}], "top_logprobs[0][1] is the text 'x', not a number"),
    ],
)
def test_a_field_of_a_wrong_kind_is_named(refused, field: str, value: object, message: str) -> None:
    fault = refused(lambda: _records(LEAST, {**LEAST, field: value}))
    assert (fault.where, fault.message) == ("f.jsonl line 2", message)


def test_a_missing_field_is_named(refused) -> None:
    fault = refused(lambda: _records({"id": "a", "response_ids": [1], "logprob": [0.0]}))
    assert (fault.message, fault.hint) == ("field 'logprobs' is missing", "did you mean 'logprob'?")


def test_records_of_parquet(tmp_path: Path) -> None:
    """Token ids as names of a struct, as a table made of Python objects has them: each row has those of every row."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet as pq

    rows = [
        {"id": "a", "response_ids": [1, 2], "logprobs": [-0.5, None], "top_logprobs": [{"1": -0.5}, {"40": -1.5}]},
        {"id": "b", "response_ids": [3], "logprobs": [-2.0], "top_logprobs": [{"3": -2.0}], "top_k": 5},
    ]
    kinds = {"response_ids": pa.list_(pa.int32()), "logprobs": pa.list_(pa.float32()), "mask": pa.list_(pa.bool_())}
    columns = {name: [row.get(name) for row in rows] for name in (*rows[0], "mask", "top_k", "dtype")}
    pq.write_table(pa.table({n: pa.array(v, kinds.get(n)) for n, v in columns.items()}), tmp_path / "r.parquet")
    first, second = GenericImporter().records(parquet.read(tmp_path / "r.parquet"), Role.ROLLOUT)
    assert (first.response_ids.dtype, first.logprobs.dtype) == (np.int64, np.float32)
    assert first.response_ids.tolist() == [1, 2]
    np.testing.assert_array_equal(first.logprobs, [-0.5, np.nan])
    assert first.top_logprobs == ({1: -0.5}, {40: -1.5})
    assert second.top_logprobs == ({3: -2.0},)
    assert (first.mask, dict(first.semantics), dict(second.semantics)) == (None, {}, {"top_k": 5})
    assert second.place == "r.parquet row 1"


def test_claims() -> None:
    claims = GenericImporter().claims
    assert claims(frozenset({"response_ids", "logprobs"}))
    assert claims(frozenset({"a/response_ids", "a/logprobs", "a/mask"}))
    assert claims(frozenset({"x.y.response_ids", "x.y.logprobs"}))
    assert not claims(frozenset({"response_ids", "rollout_log_probs"}))
    assert not claims(frozenset({"a/response_ids", "b/logprobs"}))
    assert not claims(frozenset())


def test_records_are_made_one_at_a_time() -> None:
    def rows():
        yield Row("f line 1", LEAST)
        raise AssertionError("read on")

    assert next(GenericImporter().records(rows(), Role.ROLLOUT)).id == "a"
