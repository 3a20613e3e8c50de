"""Files of arrays in the generic layout: flat, padded and grouped give the same three records, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from xcfg.importers.formats import npz, safetensors_file
from xcfg.importers.generic import GenericImporter
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

IDS = ["a", "b", "c"]
TOKENS = [[1, 2], [], [3, 4, 5]]
LOGPROBS = [[-0.5, -1.0], [], [-1.5, -2.0, -2.5]]
MASKS = [[True, False], [], [True, True, False]]
PROMPTS = [[7], [8, 9], []]
LENGTHS = np.array([2, 0, 3])
FLAT = {
    "id": np.array(IDS),
    "response_ids": np.array([1, 2, 3, 4, 5]),
    "logprobs": np.array([-0.5, -1.0, -1.5, -2.0, -2.5], np.float32),
    "mask": np.array([1, 0, 1, 1, 0], np.uint8),
    "response_length": LENGTHS,
    "prompt_ids": np.array([7, 8, 9], np.int32),
    "prompt_length": np.array([1, 2, 0]),
}
PADDED = {
    "id": np.array(IDS),
    "response_ids": np.array([[1, 2, -100, -100], [-100] * 4, [3, 4, 5, -100]]),
    "logprobs": np.array([[-0.5, -1, 0, 0], [0] * 4, [-1.5, -2, -2.5, np.nan]], np.float32),
    "mask": np.array([[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]]),
    "response_length": LENGTHS,
    "prompt_ids": np.array([[7, 0], [8, 9], [0, 0]]),
    "prompt_length": np.array([1, 2, 0]),
}
GROUPS = {
    f"{key}{mark}{name}": np.array(values[at], dtype)
    for at, (key, mark) in enumerate(zip(IDS, "/./", strict=True))
    for name, values, dtype in (
        ("response_ids", TOKENS, np.int64),
        ("logprobs", LOGPROBS, np.float32),
        ("mask", MASKS, np.bool_),
        ("prompt_ids", PROMPTS, np.int64),
    )
}


def _records(fields: dict[str, object]) -> list[Record]:
    return list(GenericImporter().records([Row("f.npz", fields)], Role.ROLLOUT))


def _check(records: list[Record]) -> None:
    assert [record.id for record in records] == IDS
    assert [record.response_ids.tolist() for record in records] == TOKENS
    assert [record.logprobs.tolist() for record in records] == LOGPROBS
    assert [record.mask.tolist() for record in records] == MASKS
    assert [record.prompt_ids.tolist() for record in records] == PROMPTS
    assert {record.logprobs.dtype for record in records} == {np.dtype(np.float32)}


@pytest.mark.parametrize("arrays", [FLAT, PADDED, GROUPS], ids=["flat", "padded", "groups"])
def test_three_layouts_of_npz(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    np.savez(tmp_path / "r.npz", **arrays)
    (row,) = npz.read(tmp_path / "r.npz")
    assert GenericImporter().claims(frozenset(row.fields))
    _check(list(GenericImporter().records([row], Role.ROLLOUT)))


@pytest.mark.parametrize("arrays", [FLAT, PADDED, GROUPS], ids=["flat", "padded", "groups"])
def test_three_layouts_of_safetensors_with_ids_in_the_metadata(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    metadata = {"dtype": "bf16", "temperature": "0.7"} | ({"id": json.dumps(IDS)} if "id" in arrays else {})
    tensors = {name: array for name, array in arrays.items() if name != "id"}
    save_file(tensors, tmp_path / "r.safetensors", metadata)
    records = list(GenericImporter().records(safetensors_file.read(tmp_path / "r.safetensors"), Role.ROLLOUT))
    _check(records)
    assert [record.dtype for record in records] == ["bfloat16"] * 3
    assert [dict(record.semantics) for record in records] == [{"temperature": 0.7}] * 3


def test_places_name_the_record() -> None:
    assert [record.place for record in _records(FLAT)] == [f"f.npz record {at}" for at in range(3)]
    assert [record.place for record in _records(GROUPS)] == [f"f.npz record {key!r}" for key in IDS]


def test_without_a_length_every_place_is_a_token_and_the_mask_is_as_given() -> None:
    """A mask alone cannot tell padding from a token that is not active, and cutting by it would hide a difference."""
    fields = {
        "id": [1, 2],
        "response_ids": np.array([[5, 0], [6, 7]]),
        "logprobs": np.zeros((2, 2)),
        "mask": [[1, 0], [1, 1]],
    }
    first, second = _records(fields)
    assert (first.id, first.response_ids.tolist(), first.mask.tolist()) == ("1", [5, 0], [True, False])
    assert (second.id, second.response_ids.tolist(), second.mask.tolist()) == ("2", [6, 7], [True, True])


def test_one_value_a_record_one_for_all_and_one_a_token() -> None:
    more = {
        "rank": np.array([0, 1, 0]),
        "temperature": np.array([0.5, 1.0, 1.5]),
        "top_p": 0.9,
        "dtype": np.array("fp16"),
        "weight_version": np.array([1, 1, 2, 2, 3]),
        "position_ids": np.array([1, 2, 0, 1, 2]),
    }
    first, second, third = _records(FLAT | more)
    assert [record.rank for record in (first, second, third)] == [0, 1, 0]
    assert [record.semantics["temperature"] for record in (first, second, third)] == [0.5, 1.0, 1.5]
    assert {(record.semantics["top_p"], record.dtype) for record in (first, second, third)} == {(0.9, "float16")}
    assert (first.weight_versions, second.weight_versions, third.weight_versions) == (("1", "1"), (), ("2", "2", "3"))
    assert (first.position_ids.tolist(), third.position_ids.tolist()) == ([1, 2], [0, 1, 2])
    each = _records(FLAT | {"weight_version": np.array(["u", "v", "w"])})
    assert [record.weight_versions for record in each] == [("u",), ("v",), ("w",)]
    every = _records(PADDED | {"weight_version": np.array([[1, 1, 0, 0], [0] * 4, [2, 2, 3, 0]])})
    assert [record.weight_versions for record in every] == [("1", "1"), (), ("2", "2", "3")]


def test_positions_of_prompt_and_response() -> None:
    found = _records(FLAT | {"position_ids": np.array([0, 1, 2, 0, 1, 0, 1, 2])})
    assert [record.position_ids.tolist() for record in found] == [[0, 1, 2], [0, 1], [0, 1, 2]]


def test_top_logprobs_beside_arrays() -> None:
    top = [[{"1": -0.5}, {"2": -1.0}], [], [{"3": -1.5}, None, {"5": -2.5}]]
    found = _records(FLAT | {"top_logprobs": top})
    assert [record.top_logprobs for record in found] == [({1: -0.5}, {2: -1.0}), (), ({3: -1.5}, {}, {5: -2.5})]


def test_one_record_in_arrays_without_a_list_of_ids() -> None:
    (record,) = _records({"id": np.array("only"), "response_ids": np.array([1, 2]), "logprobs": np.array([-1.0, -2.0])})
    assert (record.id, record.response_ids.tolist()) == ("only", [1, 2])


def test_fields_beside_a_table_that_have_a_dot_are_no_groups() -> None:
    held = {"id": "a", "response_ids": [1], "logprobs": [0.0], "b.response_ids": [2], "b.logprobs": [0.0]}
    assert [record.id for record in _records(held)] == ["a"]


def _without(name: str) -> dict[str, object]:
    return {key: value for key, value in FLAT.items() if key != name}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (_without("response_length"), "response_ids is flat and where its records end is not said"),
        (_without("prompt_length"), "prompt_ids is flat and where its records end is not said"),
        (_without("logprobs"), "field 'logprobs' is missing"),
        (FLAT | {"logprobs": np.zeros(6)}, "logprobs holds 6 values, the lengths of its records add up to 5"),
        (FLAT | {"response_length": np.array([2, 3])}, "response_length holds 2 lengths for 3 records"),
        (FLAT | {"response_length": np.array([2, -1, 4])}, "response_length holds the length -1"),
        (FLAT | {"response_length": np.array([2.0, 0, 3])}, "response_length holds float64, not integers"),
        (FLAT | {"rank": np.array([0, 1])}, "rank holds 2 values for 3 records"),
        (
            FLAT | {"weight_version": np.arange(4)},
            "weight_version holds 4 values, the lengths of its records add up to 5",
        ),
        (PADDED | {"logprobs": np.zeros((2, 4))}, "logprobs holds 2 rows for 3 records"),
        (PADDED | {"response_length": np.array([2, 0, 5])}, "response_ids holds 4 values for the 5 of record 2"),
        (PADDED | {"logprobs": np.zeros((3, 5))}, "matrices of different widths: response_ids 4, logprobs 5, mask 4"),
        (
            PADDED | {"response_ids": np.zeros((3, 4, 1), int)},
            "response_ids is an array of 2 dimensions [2, 1], not a flat list",
        ),
        (
            {"a/logprobs": np.zeros(1), "a/response_ids": np.zeros(1, int), "b/logprobs": np.zeros(1)},
            "field 'response_ids' is missing",
        ),
        (
            {"a/logprobs": np.zeros(1), "a.logprobs": np.zeros(1)},
            "holds logprobs twice, after '/' and after '.'",
        ),
    ],
)
def test_what_does_not_fit_is_named(refused, fields: dict[str, object], message: str) -> None:
    assert refused(lambda: _records(fields)).message == message


def test_no_record_is_no_fault_of_the_layout() -> None:
    empty = {"id": np.array([], str), "response_ids": np.zeros((0, 4), int), "logprobs": np.zeros((0, 4))}
    assert _records(empty) == []
