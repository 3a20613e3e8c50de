"""Values and lengths of recorded logprobs: what makes an active place invalid and what an inactive one may hold."""

from __future__ import annotations

import math

import pytest

from xcfg.model.status import Status

LENGTHS = {
    "logprobs": ({"ids": [1, 2]}, "logprobs has 3 values, response_ids 2"),
    "mask": ({"mask": [True]}, "mask has 1 values, response_ids 3"),
    "an empty mask": ({"mask": []}, "mask has 0 values, response_ids 3"),
    "top_logprobs": ({"top_logprobs": ({}, {})}, "top_logprobs has 2 values, response_ids 3"),
    "position_ids": ({"position_ids": [0, 1]}, "position_ids has 2 values, expected 3 for the response"),
    "one position more": (
        {"position_ids": [0, 1, 2, 3]},
        "position_ids has 4 values, expected 3 for the response",
    ),
    "position_ids with a prompt": (
        {"position_ids": [0, 1, 2, 3], "prompt_ids": [7, 8]},
        "position_ids has 4 values, expected 3 for the response or 5 with the prompt",
    ),
    "weight_version": ({"weight_versions": ["1", "1"]}, "weight_version has 2 values, expected one or 3"),
}


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("side", [0, 1])
def test_a_length_unlike_the_tokens(judge, record, name, side):
    fields, said = LENGTHS[name]
    sides = [[record("a"), record("b")], [record("a"), record("b")]]
    sides[side][1] = record("b", **fields, place="line 2")
    result = judge(*sides)
    assert (result.status, result.metrics) == (Status.INVALID_ARTIFACT, {})
    assert result.reason == f"{('rollout', 'training')[side]} sequence 'b' (line 2): {said}"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("wide", [False, True])
def test_what_is_not_finite(judge, record, value, side, wide):
    rows = [[-1.0, -2.0, -3.0]] * 2
    rows[side] = [-1.0, value, -3.0]
    active = judge(*([record(logprobs=row, wide=wide)] for row in rows))
    assert (active.status, active.metrics, active.worst) == (Status.NON_FINITE, {}, None)
    name = ("rollout", "training")[side]
    assert (
        active.reason
        == f"{name} sequence 'a' (a line): 1 of 3 active logprobs are not finite, first {value} at position 1"
    )
    inactive = judge(*([record(logprobs=row, wide=wide, mask=[1, 0, 1])] for row in rows))
    assert (inactive.status, inactive.active_tokens) == (Status.PASS, 2)


@pytest.mark.parametrize("wide", [False, True])
def test_positive_within_rounding_is_judged_and_beyond_is_another_artifact(judge, record, wide):
    base = [record(logprobs=[-1.0, 0.0], wide=wide)]
    fine = judge(base, [record(logprobs=[-1.0, 1e-3], wide=wide)], dtype="float32")
    assert (fine.status, fine.metrics["max_abs_dlogp"]) == (Status.FAIL, pytest.approx(1e-3, rel=1e-6))
    beyond = judge(base, [record(logprobs=[-1.0, 1.001e-3], wide=wide)])
    assert (beyond.status, beyond.metrics) == (Status.INVALID_ARTIFACT, {})
    assert "1 of 2 active logprobs are above 0.001, a probability above one, first 0.001001" in beyond.reason
    assert "at position 1" in beyond.reason
    hidden = judge([record(logprobs=[-1.0, 0.0], mask=[1, 0])], [record(logprobs=[-1.0, 5.0], mask=[1, 0])])
    assert hidden.status is Status.PASS


def test_of_several_bad_records_the_lowest_id_is_named_and_the_rest_counted(judge, record):
    bad = [record(id, [math.nan, -1.0], place=f"line {at}") for at, id in enumerate("dbc")]
    result = judge([record("a", [-1.0, -1.0]), *bad], [record(id, [-1.0, -1.0]) for id in "abcd"])
    assert result.reason.startswith("rollout sequence 'b' (line 1): 1 of 2 active logprobs are not finite")
    assert result.reason.endswith("(3 such in all)")


@pytest.mark.parametrize(
    ("value", "said"), [(math.nan, "not finite, first nan"), (0.5, "above 0.001, a probability above one, first 0.5")]
)
def test_the_lowest_id_is_named_though_its_sentence_is_not_the_first_in_order(judge, record, value, said):
    """An id with an apostrophe is shown between double quotes, which sort before single ones."""
    bad = [record(id, [math.nan, value], mask=[0, 1], place="line") for id in ("b'", "a")]
    result = judge(bad, [record(id, [-1.0, -1.0], mask=[0, 1]) for id in ("a", "b'")])
    assert (
        result.reason == f"rollout sequence 'a' (line): 1 of 1 active logprobs are {said} at position 1 (2 such in all)"
    )


@pytest.mark.parametrize("ranks", [(0, 1), (None, 0)])
def test_of_one_sequence_the_lowest_rank_is_named_and_no_rank_is_the_lowest(judge, record, ranks):
    bad = [record("a", [math.nan], rank=rank, place=f"line {9 - at}") for at, rank in enumerate(ranks)]
    said = (
        "rollout sequence 'a' (line 9): 1 of 1 active logprobs are not finite, first nan at position 0 (2 such in all)"
    )
    assert said in judge(bad[::-1], [record("a", [-1.0])]).reason


def test_a_positive_at_the_bound_is_sound_beside_an_inactive_nan(judge, record):
    mask = [1, 0]
    result = judge([record(logprobs=[0.0, -1.0], mask=mask)], [record(logprobs=[1e-3, math.nan], mask=mask, wide=True)])
    assert (result.status, result.metrics["max_abs_dlogp"]) == (Status.FAIL, 1e-3)


def test_nothing_active(judge, record):
    masked = judge([record("a", mask=[0, 0, 0])], [record("a", [-9.0] * 3, mask=[0, 0, 0])])
    assert (masked.status, masked.metrics) == (Status.ZERO_ACTIVE_TOKENS, {})
    both = [record(id, mask=[0, 0, 0]) for id in "ab"]
    assert judge(both, both).reason == "none of 6 response tokens in 2 sequences is active"
    empty = judge([record("a", [])], [record("a", [])])
    assert (empty.status, empty.reason) == (
        Status.ZERO_ACTIVE_TOKENS,
        "none of 0 response tokens in 1 sequences is active",
    )
    one = judge([record("a", []), record("b")], [record("a", []), record("b")])
    assert (one.status, one.active_tokens) == (Status.PASS, 3)


def test_no_record_is_no_pass(judge, record):
    for rollout, training, said in (
        ([], [], "rollout holds no record; training holds no record"),
        ([record()], [], "training holds no record"),
        ([], [record()], "rollout holds no record"),
    ):
        result = judge(rollout, training)
        assert (result.status, result.reason) == (Status.INVALID_ARTIFACT, said)


def test_values_beyond_the_float_range_are_left_out_and_never_pass(judge, record):
    result = judge([record(logprobs=[-1e300], wide=True)], [record(logprobs=[-1.0], wide=True)])
    assert (result.status, result.metrics["max_abs_dlogp"]) == (Status.FAIL, 1e300)
    assert "ratio0_max" not in result.metrics
    assert all(math.isfinite(value) for value in result.metrics.values())
