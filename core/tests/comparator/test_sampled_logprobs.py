"""Logprobs reported while sampling against forced decode."""

from __future__ import annotations

import math

import pytest
from attrs import evolve

from xcfg.comparator.compare import compare
from xcfg.comparator.sampled import check_sampled, compare_sampled, with_sampled_logprobs
from xcfg.errors import ArtifactError
from xcfg.model.sample import TokenBatch
from xcfg.model.status import Status

ROWS = [[-1.0, -2.0, -3.0], [-1.5, -2.5]]


def batch(sampled, ids=("s0", "s1"), masks=None, responses=((10, 11, 12), (10, 11))):
    return TokenBatch(
        ids=ids,
        prompts=[[1, 1], [1, 1, 1]],
        responses=responses,
        action_masks=masks or [[True] * len(row) for row in responses],
        sampled_logprobs=sampled,
    )


def test_equal_or_recorded_batches_are_no_finding(contract, side):
    forced = side(ROWS)
    assert check_sampled(forced, batch(ROWS)) is None
    assert check_sampled(forced, batch(None)) is None
    assert with_sampled_logprobs(forced, batch(None)) is None
    judged = compare_sampled(forced, side(ROWS), batch(ROWS), contract)
    assert judged[0] == compare(forced, side(ROWS), contract)[0]


def test_a_difference_is_a_finding_of_class_execution_and_the_worse_verdict_counts(contract, side):
    forced, training = side(ROWS), side(ROWS)
    sampled = batch([ROWS[0], [-1.5, -2.75]])
    finding = check_sampled(forced, sampled)
    assert (finding.source_class, finding.rule) == ("execution", "sampled_against_forced")
    evidence = finding.evidence
    assert (evidence["tokens_unequal"], evidence["tokens_compared"]) == (1, 5)
    assert (evidence["max_abs_difference"], evidence["mean_abs_difference"]) == (0.25, 0.05)
    assert dict(evidence["first"]) == {
        "sequence": "s1",
        "position": 1,
        "rank": 0,
        "forced_logp": -2.5,
        "sampled_logp": -2.75,
    }
    assert compare(forced, training, contract)[0].status is Status.PASS
    result, tokens = compare_sampled(forced, training, sampled, contract)
    assert (result.status, result.metrics["max_abs_dlogp"]) == (Status.FAIL, 0.25)
    assert "sampled_against_forced" in [item.rule for item in result.findings]
    assert tokens.rollout_logp.tolist() == [-1.0, -2.0, -3.0, -1.5, -2.75]


def test_the_forced_verdict_stays_where_it_is_the_worse(contract, side):
    sampled = batch(ROWS)
    forced = side([ROWS[0], [-1.5, -2.0]])
    result, _ = compare_sampled(forced, side(ROWS), sampled, contract)
    assert (result.status, result.metrics["max_abs_dlogp"]) == (Status.FAIL, 0.5)
    assert result.worst.rollout_logp == -2.0


def test_nan_while_sampling_is_never_a_pass(contract, side):
    result, _ = compare_sampled(side(ROWS), side(ROWS), batch([ROWS[0], [math.nan, -2.5]]), contract)
    assert result.status is Status.NON_FINITE


def test_masked_tokens_may_differ_and_the_order_of_ids_does_not_matter(side):
    masks = [[True, True, True], [True, False]]
    assert check_sampled(side(ROWS, masks=masks), batch([ROWS[0], [-1.5, -9.0]], masks=masks)) is None
    swapped = TokenBatch(
        ids=["s1", "s0"],
        prompts=[[1, 1, 1], [1, 1]],
        responses=[[10, 11], [10, 11, 12]],
        action_masks=[[True] * 2, [True] * 3],
        sampled_logprobs=[ROWS[1], ROWS[0]],
    )
    assert check_sampled(side(ROWS), swapped) is None


def test_another_batch_is_refused(side):
    with pytest.raises(ArtifactError, match="other sequences"):
        check_sampled(side(ROWS), batch(ROWS, ids=("s0", "zz")))
    with pytest.raises(ArtifactError, match="other tokens"):
        check_sampled(side(ROWS), batch(ROWS, responses=((10, 11, 12), (10, 99))))
    with pytest.raises(ArtifactError, match="other lengths"):
        check_sampled(side(ROWS), batch([ROWS[0], [-1.5]], responses=((10, 11, 12), (10,))))


def test_replicated_rows_are_all_checked(side):
    forced = side([*ROWS, [-1.5, -2.25]], sequences=[0, 1, 1], ranks=[0, 0, 1], world=2)
    finding = check_sampled(forced, batch(ROWS))
    assert (finding.evidence["tokens_unequal"], finding.evidence["first"]["rank"]) == (1, 1)
    assert evolve(forced).expected_ranks == 2
