"""Ranks: replicas of one sequence, ranks that are missing, and merges weighted by active tokens."""

from __future__ import annotations

import json
import math

import pytest

from xcfg.model.status import Status


def finding(result, rule):
    return next((item for item in result.findings if item.rule == rule), None)


def test_the_worst_replica_judges_and_disagreement_is_a_finding(judge, record):
    rollout = [record("a", [-1.0, -2.0], rank=0), record("a", [-1.0, -2.5], rank=1), record("b", [-1.0, -1.0], rank=1)]
    training = [record("a", [-1.0, -2.0]), record("b", [-1.0, -1.0])]
    result = judge(rollout, training)
    assert (result.status, result.active_tokens) == (Status.FAIL, 4)
    assert result.metrics["max_abs_dlogp"] == 0.5
    assert (result.worst.sequence, result.worst.position, result.worst.rollout_rank) == ("a", 1, 1)
    assert [(item.rollout_rank, item.train_rank, item.active_tokens) for item in result.per_rank] == [
        (0, 0, 2),
        (1, 0, 4),
    ]
    evidence = finding(result, "replicas_bitwise_equal").evidence
    assert (evidence["side"], evidence["sequences_replicated"], evidence["sequences_disagreeing"]) == ("rollout", 1, 1)
    assert (evidence["tokens_compared"], evidence["tokens_unequal"], evidence["max_abs_difference"]) == (2, 1, 0.5)
    assert evidence["first"] == {"sequence": "a", "position": 1, "ranks": (0, 1), "logprobs": (-2.0, -2.5)}


def test_equal_replicas_count_once_and_ties_go_to_the_lowest_ranks(judge, record):
    rollout = [record("a", [-1.0], rank=rank) for rank in (2, 1, 0)]
    training = [record("a", [-1.5], rank=rank) for rank in (1, 0)]
    result = judge(rollout, training)
    assert result.active_tokens == 1
    assert (result.worst.rollout_rank, result.worst.train_rank) == (0, 0)
    assert len(result.per_rank) == 6
    assert finding(result, "replicas_bitwise_equal") is None


def test_replicas_that_differ_in_an_inactive_place_agree(judge, record):
    mask = [True, False]
    rollout = [record("a", [-1.0, -7.0], rank=0, mask=mask), record("a", [-1.0, math.nan], rank=1, mask=mask)]
    result = judge(rollout, [record("a", [-1.0, 3.0], mask=mask)])
    assert (result.status, result.active_tokens) == (Status.PASS, 1)
    assert finding(result, "replicas_bitwise_equal") is None


def test_minus_zero_is_other_bits(judge, record):
    result = judge([record("a", [0.0], rank=0), record("a", [-0.0], rank=1)], [record("a", [0.0])])
    assert finding(result, "replicas_bitwise_equal").evidence["max_abs_difference"] == 0.0
    assert result.status is Status.PASS


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_a_replica_with_a_nan_is_non_finite_and_its_finding_can_be_written(judge, record, order):
    """Largest difference: unknown, also where a finite one is seen before or after it."""
    by_sequence = [
        [record("a", [-1.0], rank=0), record("a", [math.nan], rank=1)],
        [record("b", [-1.0], rank=0), record("b", [-1.5], rank=1)],
        [record("c", [-1.0], rank=0), record("c", [-math.inf], rank=1)],
    ]
    names = ["abc"[place] for place in order]
    rollout = [record(names[at], item.logprobs, rank=item.rank) for at, pair in enumerate(by_sequence) for item in pair]
    result = judge(rollout, [record(name, [-1.0]) for name in names])
    assert result.status is Status.NON_FINITE
    evidence = finding(result, "replicas_bitwise_equal").evidence
    assert (evidence["max_abs_difference"], evidence["tokens_unequal"]) == (None, 3)
    first = evidence["first"]["logprobs"]
    json.dumps(list(first), allow_nan=False)
    assert first == ((-1.0, "nan") if order[0] == 0 else (-1.0, "-inf"))


def test_replicas_of_other_tokens_are_another_identity(judge, record):
    """An id that is a counter on each rank names other sequences, not replicas."""
    rollout = [record("0", ids=[1, 2, 3], rank=0), record("0", ids=[1, 5, 3], rank=1)]
    result = judge(rollout, [record("0", ids=[1, 2, 3])])
    assert result.status is Status.INVALID_IDENTITY
    assert "response_ids differs in sequence '0' at index 1: rollout rank 0 (0 line) 2, rollout rank 1" in result.reason


def test_masked_everywhere_on_every_replica_is_zero_active(judge, record):
    rollout = [record("a", rank=rank, mask=[False] * 3) for rank in (0, 1)]
    result = judge(rollout, [record("a", mask=[False] * 3)])
    assert (result.status, result.metrics, result.active_tokens) == (Status.ZERO_ACTIVE_TOKENS, {}, 0)
    assert result.reason == "none of 3 response tokens in 1 sequences is active"


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ((0, 2), "has records of rank 2 and none of rank 1"),
        ((1, 2), "none of rank 0"),
        ((0, 6), "rollout has records of rank 6 and none of rank 1, 2, 3, 4, 5"),
        ((0, 7), "none of rank 1, 2, 3, 4, 5 and 1 more"),
        ((0, 9), "none of rank 1, 2, 3, 4, 5 and 3 more"),
        ((0, 2**31 - 1), "none of rank 1, 2, 3, 4, 5 and 2147483641 more"),
        ((0, None), "some rollout records state a rank and some do not, as line 1"),
        ((0, -1), "rank is -1, ranks count from 0"),
        ((0, 2**31), "rank is 2147483648"),
        ((0, 2**70), "rank is 1180591620717411303424"),
    ],
)
def test_ranks_count_from_zero_without_a_gap(judge, record, ranks, said):
    rollout = [record(str(at), rank=rank, place=f"line {at}") for at, rank in enumerate(ranks)]
    result = judge(rollout, [record(str(at)) for at in range(len(ranks))])
    assert result.status is Status.INVALID_ARTIFACT
    assert said in result.reason
    assert "none of" not in said or result.reason.endswith(said)


def test_the_ranks_of_both_sides_are_told(judge, record):
    rollout, training = ([record(str(at), rank=rank) for at, rank in enumerate(ranks)] for ranks in ((0, 2), (1, 2)))
    result = judge(rollout, training)
    assert "rollout has records of rank 2 and none of rank 1" in result.reason
    assert "training has records of rank 2 and none of rank 0" in result.reason
    assert "such in all" not in result.reason


def test_ranks_stated_by_some_records_of_both_sides_are_told(judge, record):
    sides = [[record("a", rank=0), record("b", place=place)] for place in ("left", "right")]
    reason = judge(*sides).reason
    assert "some rollout records state a rank and some do not, as left" in reason
    assert "some training records state a rank and some do not, as right" in reason


def test_a_refused_record_does_not_make_its_rank_missing(judge, record):
    short = record("b", [-1.0], ids=[1, 2], rank=1, place="line 7")
    result = judge([record("a", rank=0), short, record("c", rank=2)], [record(id) for id in "abc"])
    assert result.reason == "rollout sequence 'b' (line 7): logprobs has 1 values, response_ids 2"


def test_one_sequence_twice_on_a_rank(judge, record):
    rollout = [record("a", rank=0, place="line 1"), record("b", rank=0), record("a", rank=0, place="line 9")]
    result = judge(rollout, [record("a"), record("b")])
    assert result.status is Status.INVALID_ARTIFACT
    assert result.reason == "rollout has sequence 'a' on rank 0 twice: line 1 and line 9"


def test_the_two_sides_may_have_other_ranks(judge, record):
    rollout = [record(str(at), rank=at % 4) for at in range(8)]
    training = [record(str(at), [-1.0, -2.0, -3.0 - at / 8], rank=at % 2) for at in range(8)]
    result = judge(rollout, training)
    pairs = [(item.rollout_rank, item.train_rank, item.metrics["max_abs_dlogp"]) for item in result.per_rank]
    assert pairs == [(0, 0, 0.5), (1, 1, 0.625), (2, 0, 0.75), (3, 1, 0.875)]
    assert [dict(item.rollout)["world_size"] for item in result.per_rank] == [4] * 4
    assert [dict(item.training)["world_size"] for item in result.per_rank] == [2] * 4


def test_ranks_of_other_dtypes_are_judged_by_the_lowest(judge, record):
    rollout = [record("a", rank=0, dtype="float32"), record("b", rank=1, dtype="bfloat16")]
    result = judge(rollout, [record("a", dtype="float16"), record("b", dtype="float16")])
    assert (result.status, result.dtype) == (Status.PASS, "bfloat16")
    evidence = finding(result, "compute_dtype_by_rank").evidence
    assert evidence["compute_dtype"] == {"0": "float32", "1": "bfloat16"}


@pytest.mark.parametrize("side", [0, 1])
def test_ranks_of_other_dtypes_are_told_of_their_side(judge, record, side):
    sides = [[record("a", rank=0), record("b", rank=1, dtype=name)] for name in ("float32", "float32")]
    sides[side][1] = record("b", rank=1, dtype="bfloat16")
    found = finding(judge(*sides), "compute_dtype_by_rank")
    assert found.evidence["side"] == ("rollout", "training")[side]
