"""Comparability of two records of one id: what differs is named with its place, and silence counts as the default."""

from __future__ import annotations

import pytest

from xcfg.errors import InvalidInput
from xcfg.model.status import Status

ALWAYS = ("checkpoint", "logprobs_mode", "mask", "position_ids", "prompt_ids", "temperature", "top_k", "top_p")
FULL = {
    "semantics": {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "logprobs_mode": "raw_logprobs"},
    "mask": [True, True, True],
    "prompt_ids": [7, 8],
    "position_ids": [0, 1, 2, 3, 4],
    "weight_versions": ("5",),
}

DIFFERENT = {
    "tokens": (
        {"ids": [1, 2, 3]},
        {"ids": [1, 4, 3]},
        "response_ids differs in sequence 'a' at index 1: rollout (left) 2, training (right) 4",
    ),
    "lengths": (
        {},
        {"logprobs": [-1.0]},
        "response_ids of sequence 'a' has 3 values in rollout (left), 1 in training (right)",
    ),
    "prompt": (
        {"prompt_ids": [7, 8]},
        {"prompt_ids": [7, 9]},
        "prompt_ids differs in sequence 'a' at index 1: rollout (left) 8",
    ),
    "prompt lengths": (
        {"prompt_ids": [7, 8]},
        {"prompt_ids": [7]},
        "prompt_ids of sequence 'a' has 2 values in rollout (left), 1",
    ),
    "masks": (
        {"mask": [1, 0, 1]},
        {"mask": [1, 1, 1]},
        "mask differs in sequence 'a' at index 1: rollout (left) False",
    ),
    "a mask on one side": (
        {},
        {"mask": [1, 1, 0]},
        "mask differs in sequence 'a' at index 2: rollout (left) True, training (right) False",
    ),
    "positions": (
        {"position_ids": [2, 3, 4]},
        {"position_ids": [2, 3, 5]},
        "position_ids differs in sequence 'a' at index 2",
    ),
    "positions of the prompt": (
        {"prompt_ids": [7, 8], "position_ids": [0, 1, 2, 3, 4]},
        {"prompt_ids": [7, 8], "position_ids": [1, 1, 2, 3, 4]},
        "position_ids differs in sequence 'a' at index 0: rollout (left) 0, training (right) 1",
    ),
    "positions with and without the prompt": (
        {"prompt_ids": [7, 8], "position_ids": [0, 1, 2, 3, 4]},
        {"prompt_ids": [7, 8], "position_ids": [3, 4, 5]},
        "position_ids differs in sequence 'a' at index 0: rollout (left) 2, training (right) 3",
    ),
    "positions that jump": (
        {"position_ids": [2, 3, 5]},
        {},
        "in rollout (left) go from 3 to 5 at index 2; the other side",
    ),
    "positions of a prompt that jump": (
        {},
        {"prompt_ids": [7, 8], "position_ids": [0, 0, 1, 2, 3]},
        "position_ids of sequence 'a' in training (right) go from 0 to 0 at index 1",
    ),
    "positions that start elsewhere": (
        {"prompt_ids": [7, 8], "position_ids": [3, 4, 5]},
        {},
        "start the response at 3, its prompt has 2 tokens",
    ),
    "positions that start elsewhere, the prompt on the other side": (
        {"position_ids": [3, 4, 5]},
        {"prompt_ids": [7, 8]},
        "start the response at 3, its prompt has 2 tokens",
    ),
    "weights": (
        {"weight_versions": ["5"]},
        {"weight_versions": ["6"]},
        "weight_version differs in sequence 'a' from position 0: rollout (left) '5', training (right) '6'",
    ),
    "weights from a token on": (
        {"weight_versions": ["5", "5", "6"]},
        {"weight_versions": ["5"]},
        "weight_version differs in sequence 'a' from position 2",
    ),
    "weights inside a sequence": (
        {"weight_versions": ["5", "5", "6"]},
        {"weight_versions": ["5", "5", "6"]},
        "weight_version changes inside sequence 'a' of rollout (left) at position 2: '5' before, '6' from there",
    ),
    "weights after the first token": (
        {"weight_versions": ["5", "6", "6"]},
        {"weight_versions": ["5", "6", "6"]},
        "weight_version changes inside sequence 'a' of rollout (left) at position 1: '5' before, '6' from there",
    ),
    "temperature": (
        {"semantics": {"temperature": 0.6}},
        {"semantics": {"temperature": 0.7}},
        "temperature differs: rollout 0.6, training 0.7; sequence 'a' (left, right)",
    ),
    "temperature on one side": (
        {"semantics": {"temperature": 0.6}},
        {},
        "temperature differs: rollout 0.6, training 1.0 (its default, not stated)",
    ),
    "top_p on one side": (
        {},
        {"semantics": {"top_p": 0.9}},
        "top_p differs: rollout 1.0 (its default, not stated), training 0.9",
    ),
    "top_k": ({"semantics": {"top_k": 50}}, {"semantics": {"top_k": -1}}, "top_k differs: rollout 50, training 0"),
    "min_p on one side": ({"semantics": {"min_p": 0.1}}, {}, "min_p differs"),
    "logprobs_mode": ({"semantics": {"logprobs_mode": "processed_logprobs"}}, {}, "logprobs_mode differs"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_difference_is_named_with_its_place_and_both_values(judge, record, name):
    left, right, said = DIFFERENT[name]
    result = judge([record(place="left", **left)], [record(place="right", **right)])
    assert (result.status, result.metrics) == (Status.INVALID_IDENTITY, {})
    assert said in result.reason
    swapped = judge([record(place="left", **right)], [record(place="right", **left)])
    assert swapped.status is Status.INVALID_IDENTITY


SAME = {
    "a mask of ones and none": ({"mask": [True] * 3}, {}),
    "top_k off in either spelling": ({"semantics": {"top_k": -1}}, {"semantics": {"top_k": 0}}),
    "the mode in either spelling": (
        {"semantics": {"logprobs_mode": "raw"}},
        {"semantics": {"logprobs_mode": "raw_logprobs"}},
    ),
    "the other mode in either spelling": (
        {"semantics": {"logprobs_mode": "processed"}},
        {"semantics": {"logprobs_mode": "processed_logprobs"}},
    ),
    "stated defaults and silence": ({"semantics": {"temperature": 1.0, "top_p": 1, "min_p": 0.0}}, {}),
    "one version and one a token": ({"weight_versions": ["5"]}, {"weight_versions": ["5"] * 3}),
    "a version and none": ({"weight_versions": ["5"]}, {}),
    "consecutive positions and none": ({"position_ids": [40, 41, 42]}, {}),
    "positions with and without the prompt": (
        {"prompt_ids": [7, 8], "position_ids": [0, 1, 2, 3, 4]},
        {"position_ids": [2, 3, 4]},
    ),
    "a prompt and none": ({"prompt_ids": [7, 8]}, {}),
    "positions of no tokens": ({"logprobs": [], "position_ids": []}, {"logprobs": [], "position_ids": []}),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_thing_said_otherwise_is_comparable(judge, record, name):
    left, right = SAME[name]
    for rollout, training in ((left, right), (right, left)):
        result = judge([record("other"), record(**rollout)], [record("other"), record(**training)])
        assert result.status is Status.PASS, result.reason


def test_ids_on_one_side_only_are_counted_and_the_lowest_is_named(judge, record):
    result = judge([record(id) for id in "fdeab"], [record(id) for id in "acbg"])
    assert (result.status, result.metrics) == (Status.INVALID_IDENTITY, {})
    assert "'d' (d line) is only on the rollout side (3 such in all)" in result.reason
    assert "'c' (c line) is only on the training side (2 such in all)" in result.reason


def test_every_field_that_differs_is_told(judge, record):
    rollout = [record("a", prompt_ids=[7, 8]), record("b", mask=[1, 1, 1], weight_versions=["5"])]
    training = [record("a", prompt_ids=[7, 9], ids=[1, 2, 3]), record("b", mask=[1, 1, 0], weight_versions=["6"])]
    reason = judge(rollout, training).reason
    for said in (
        "response_ids differs in sequence 'a' at index 0: rollout (a line) 10, training (a line) 1",
        "prompt_ids differs in sequence 'a' at index 1: rollout (a line) 8, training (a line) 9",
        "mask differs in sequence 'b' at index 2: rollout (b line) True, training (b line) False",
        "weight_version differs in sequence 'b' from position 0: rollout (b line) '5', training (b line) '6'",
    ):
        assert said in reason
    assert "such in all" not in reason


def test_weights_of_an_empty_response_are_compared(judge, record):
    sides = [[record("a", []), record("b", [], weight_versions=[version])] for version in "56"]
    assert "in sequence 'b' from position 0: rollout (b line) '5', training (b line) '6'" in judge(*sides).reason


def test_positions_that_differ_in_any_way_are_counted_together(judge, record):
    """a: both state other positions; b: one states a jump; c: one starts elsewhere than its prompt ends."""
    rollout = [
        record("a", position_ids=[2, 3, 4]),
        record("b", position_ids=[2, 3, 5]),
        record("c", prompt_ids=[7, 8], position_ids=[3, 4, 5]),
    ]
    result = judge(rollout, [record("a", position_ids=[2, 3, 5]), record("b"), record("c")])
    said = "position_ids differs in sequence 'a' at index 2: rollout (a line) 4, training (a line) 5 (3 such in all)"
    assert (result.status, result.reason) == (Status.INVALID_IDENTITY, said)


def test_ids_that_differ_only_in_normalisation_are_other_ids(judge, record):
    result = judge([record("\u00e9")], [record("e\u0301")])
    assert result.status is Status.INVALID_IDENTITY


def test_what_is_assumed_is_listed(judge, record):
    bare = judge([record()], [record()])
    assert bare.assumed == (*ALWAYS, "weight_version")
    assert judge([record(**FULL)], [record(**FULL)]).assumed == ()
    one = judge([record(**FULL)], [record()])
    assert one.assumed == bare.assumed
    assert "min_p" in judge([record(semantics={"min_p": 0.0})], [record()]).assumed
    assert "min_p" not in judge([record(semantics={"min_p": 0.0})], [record(semantics={"min_p": 0})]).assumed
    different = judge([record(semantics={"temperature": 0.5})], [record()])
    assert (different.status, different.assumed) == (Status.INVALID_IDENTITY, bare.assumed)
    sides = [[record("a", prompt_ids=[7]), record("b", mask=[1, 1, 1])] for _ in range(2)]
    assert {"mask", "prompt_ids"} < set(judge(*sides).assumed)
    by_convention = judge([record(**FULL, assumed=["id"])], [record(**FULL)])
    assert by_convention.assumed == ("id",)


@pytest.mark.parametrize("missing", [*FULL, "dtype"])
@pytest.mark.parametrize("side", [0, 1])
def test_strict_refuses_what_a_side_leaves_out_and_says_where(judge, record, missing, side):
    partial = {name: value for name, value in FULL.items() if name != missing}
    if missing == "prompt_ids":
        partial["position_ids"] = [2, 3, 4]
    dtype = {"dtype": ""} if missing == "dtype" else {}
    sides = [[record("a", **FULL), record("b", **FULL)] for _ in range(2)]
    sides[side][1] = record("b", **partial, **dtype, place="line 2")
    assert judge(*sides).status is Status.PASS
    result = judge(*sides, strict=True)
    assert result.status is Status.INVALID_IDENTITY
    said = {"semantics": "logprobs_mode, temperature, top_k, top_p", "weight_versions": "checkpoint, weight_version"}
    place = "line 2" if missing == "dtype" or side == 0 else "sequence 'b' (b line)"
    assert result.reason.startswith(f"strict: {said.get(missing, missing)} not stated on both sides, first in ")
    assert place in result.reason


def test_strict_passes_where_everything_is_said(judge, record):
    assert judge([record(**FULL)], [record(**FULL)], strict=True).status is Status.PASS


def test_a_record_without_dtype_counts_as_the_lowest_that_is_stated(judge, record):
    def dtype(left, right, **terms):
        rollout, training = ([record(str(at), dtype=name) for at, name in enumerate(side)] for side in (left, right))
        result = judge(rollout, training, **terms)
        return result.dtype, "dtype" in result.assumed

    assert dtype(["float16", "float16"], ["", ""]) == ("float16", True)
    assert dtype(["", ""], ["float16", "float16"]) == ("float16", True)
    assert dtype(["bfloat16", ""], ["float32", "float32"]) == ("bfloat16", True)
    assert dtype(["float32", ""], ["bfloat16", "bfloat16"]) == ("bfloat16", True)
    assert dtype(["float16", ""], ["", ""]) == ("float16", True)
    assert dtype(["", ""], ["", ""]) == ("", False)
    assert dtype(["", ""], ["", ""], dtype="float32") == ("float32", False)
    assert dtype(["float32", ""], ["", ""], dtype="float32") == ("float32", False)


def test_a_dtype_that_only_contradicts_is_refused_at_its_place(judge, record):
    rollout = [record("a", dtype="float32"), record("b", dtype="float32")]
    training = [record("a", dtype="float32"), record("b", dtype="bfloat16", place="train.jsonl line 2")]
    with pytest.raises(InvalidInput) as raised:
        judge(rollout, training, dtype="float32")
    (fault,) = raised.value.faults
    assert fault.message == "training records state dtype bfloat16, --dtype says float32"
    assert (fault.where, fault.hint) == ("train.jsonl line 2", "leave --dtype out, or correct the records")
