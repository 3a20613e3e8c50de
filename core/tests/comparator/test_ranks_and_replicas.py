"""Per-rank metrics and replicated sequences."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from attrs import evolve

from xcfg.comparator.compare import compare
from xcfg.model.status import Status


def test_each_pair_of_ranks_has_its_own_metrics_and_metadata(contract, side):
    rollout = side([[-1.0, -1.0], [-1.0], [-1.0]], world=2, ranks=[0, 1, 1], dtype=["float32", "float32"])
    training = side([[-1.0, -1.5], [-2.0], [-1.25]], world=2, ranks=[0, 0, 1], dtype="bfloat16")
    result, _ = compare(rollout, training, contract)
    table = [(item.rollout_rank, item.train_rank, item.active_tokens) for item in result.per_rank]
    assert table == [(0, 0, 2), (1, 0, 1), (1, 1, 1)]
    assert [item.metrics["max_abs_dlogp"] for item in result.per_rank] == [0.5, 1.0, 0.25]
    last = result.per_rank[2]
    assert (last.rollout["rank"], last.training["compute_dtype"]) == (1, "bfloat16")
    assert {"world_size", "parallel", "padding_side", "cache_mode", "facts"} <= set(last.training)


def test_a_pair_of_ranks_without_active_tokens_is_listed_without_metrics(contract, side):
    masks = [[True], [False]]
    make = {"masks": masks, "world": 2, "ranks": [0, 1]}
    result, _ = compare(side([[-1.0], [-1.0]], **make), side([[-1.0], [-1.0]], **make), contract)
    assert [(item.active_tokens, dict(item.metrics) == {}) for item in result.per_rank] == [(1, False), (0, True)]


def replicated(side, values, **kwargs):
    """Sequences 0 and 1, both on every one of the ranks; ``values[rank]`` is the logprob of sequence 1's last token."""
    rows, ranks, sequences = [], [], []
    for rank, value in enumerate(values):
        rows += [[-1.0, -2.0], [-3.0, value]]
        ranks += [rank, rank]
        sequences += [0, 1]
    return side(rows, ranks=ranks, sequences=sequences, world=len(values), **kwargs)


def test_replicas_that_agree_are_no_finding_and_count_once(contract, side):
    result, tokens = compare(replicated(side, [-4.0, -4.0]), side([[-1.0, -2.0], [-3.0, -4.0]]), contract)
    assert (result.status, result.active_tokens) == (Status.PASS, 4)
    assert "replicas_bitwise_equal" not in [item.rule for item in result.findings]
    assert [item.active_tokens for item in result.per_rank] == [4, 4]
    assert tokens.rollout_rank.tolist() == [0, 0, 0, 0]


def test_replicas_that_disagree_are_a_finding_and_the_worst_judges(contract, side):
    result, tokens = compare(replicated(side, [-4.0, -4.5, -4.25]), side([[-1.0, -2.0], [-3.0, -4.0]]), contract)
    assert result.status is Status.FAIL
    assert result.metrics["max_abs_dlogp"] == 0.5
    assert result.active_tokens == 4
    assert (result.worst.sequence, result.worst.position, result.worst.rollout_rank) == ("s1", 1, 1)
    assert tokens.rollout_rank.tolist() == [0, 0, 1, 1]
    (finding,) = [item for item in result.findings if item.rule == "replicas_bitwise_equal"]
    assert (finding.source_class, finding.subclass) == ("reduction", "replicas disagree")
    evidence = finding.evidence
    assert (evidence["side"], evidence["sequences_replicated"], evidence["sequences_disagreeing"]) == ("rollout", 2, 1)
    assert (evidence["tokens_unequal"], evidence["tokens_compared"], evidence["max_abs_difference"]) == (2, 8, 0.5)
    first = evidence["first"]
    assert (first["sequence"], first["position"], first["ranks"], first["logprobs"]) == ("s1", 1, (0, 1), (-4.0, -4.5))
    assert [item.metrics["max_abs_dlogp"] for item in result.per_rank] == [0.0, 0.5, 0.25]


def test_replicas_on_both_sides_are_judged_in_every_combination(contract, side):
    result, _ = compare(replicated(side, [-4.0, -4.5]), replicated(side, [-4.125, -4.0]), contract)
    expected = {(0, 0): 0.125, (0, 1): 0.0, (1, 0): 0.375, (1, 1): 0.5}
    found = {(item.rollout_rank, item.train_rank): item.metrics["max_abs_dlogp"] for item in result.per_rank}
    assert found == expected
    assert (result.worst.rollout_rank, result.worst.train_rank) == (1, 1)
    sides = [item.evidence["side"] for item in result.findings if item.rule == "replicas_bitwise_equal"]
    assert sides == ["rollout", "training"]


def test_a_nan_on_any_replica_is_never_a_pass(contract, side):
    single = side([[-1.0, -2.0], [-3.0, -4.0]])
    for values in permutations([-4.0, -4.5, math.nan]):
        for pair in ((replicated(side, values), single), (single, replicated(side, values))):
            result, tokens = compare(*pair, contract)
            assert result.status is Status.NON_FINITE
            assert math.isnan(tokens.rollout_logp[-1] + tokens.train_logp[-1])


def test_replicas_of_other_tokens_are_an_identity_fault(contract, side):
    rows = [[-1.0, -2.0], [-1.0, -2.0]]
    twice = side(rows, sequences=[0, 0], ranks=[0, 1], world=2, tokens=[[5, 6], [5, 7]])
    result, _ = compare(twice, side(rows[:1], tokens=[[5, 6]]), contract)
    assert result.status is Status.INVALID_IDENTITY
    assert "rollout rank 0 6, rollout rank 1 7" in result.reason


def test_the_order_of_ranks_and_rows_changes_nothing(contract, side, permute):
    left = replicated(side, [-4.0, -4.5, -4.25])
    right = side([[-1.0, -2.0], [-3.0, -4.0]])
    expected, _ = compare(left, right, contract)
    for order in ([5, 4, 3, 2, 1, 0], [2, 5, 0, 3, 1, 4]):
        mixed = permute(evolve(left, ranks=left.ranks[::-1]), order)
        assert compare(mixed, right, contract)[0] == expected


@pytest.mark.parametrize("lengths", [[0, 2, 0, 3], [2, 0], [0, 0, 1]])
def test_sequences_without_a_response_are_no_obstacle(contract, side, lengths):
    rows = [[-1.0] * length for length in lengths]
    result, _ = compare(side(rows), side(rows), contract)
    assert (result.status, result.active_tokens) == (Status.PASS, sum(lengths))
