"""What findings and reasons tell: class, rule and evidence in full, and the exact place that a sentence names."""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
import pytest
from attrs import evolve

from xcfg.comparator.artifact import artifact_defects
from xcfg.comparator.blocks import TokenPairs
from xcfg.comparator.compare import compare
from xcfg.comparator.defect import Defect, named
from xcfg.comparator.frozen import frozen_defects, frozen_tokens
from xcfg.comparator.judging import judged
from xcfg.comparator.pairing import ordered_ids, side_rows
from xcfg.comparator.repeat import repeat_findings
from xcfg.comparator.sampled import check_sampled, compare_sampled, with_sampled_logprobs
from xcfg.comparator.tolerance import row
from xcfg.comparator.values import positive, sound, value_defects
from xcfg.comparator.verdict import worse
from xcfg.errors import ArtifactError
from xcfg.model.attempt import Measured
from xcfg.model.result import Comparison
from xcfg.model.sample import Samples, TokenBatch
from xcfg.model.status import Status

ROWS = [[-1.0, -2.0, -3.0], [-1.5, -2.5]]
LIMIT = 2.0**-10


@pytest.fixture(autouse=True)
def no_warnings():
    """What a side recorded is told in a result, never by a warning of numpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def only(findings, rule):
    (found,) = [item for item in findings if item.rule == rule]
    return found


def kind(finding):
    return finding.source_class, finding.subclass, finding.rule


def batch(sampled=None, **changes):
    fields = {
        "ids": ["s0", "s1"],
        "prompts": [[1, 1], [1, 1, 1]],
        "responses": [[10, 11, 12], [10, 11]],
        "action_masks": [[True] * 3, [True] * 2],
        "sampled_logprobs": sampled,
    }
    return TokenBatch(**{**fields, **changes})


# findings in full


def test_the_repeat_finding():
    repeats = {"count": 3, "bitwise_equal": False, "max_abs_difference": 0.5}
    (finding,) = repeat_findings("training", Measured(repeats=repeats))
    assert kind(finding) == ("execution", "run-to-run", "repeat")
    assert dict(finding.evidence) == {"side": "training", "scored": 3, "max_abs_difference": 0.5}


def test_the_finding_of_metrics_beyond_the_range(contract, side):
    result, _ = compare(side([[-900.0, -1.0]]), side([[-0.5, -1.0]]), contract)
    finding = only(result.findings, "metric_overflow")
    assert kind(finding) == ("logical", "observation", "metric_overflow")
    assert dict(finding.evidence) == {
        "metrics": ("ratio0_mean", "ratio0_max", "approx_kl0", "k3", "token_mult_prob_error", "chi2_token"),
        "max_abs_dlogp": 899.5,
        "log_of_largest_float": math.log(sys.float_info.max),
        "rollout_logp": -900.0,
        "train_logp": -0.5,
    }


def test_the_finding_of_another_forced_decode_and_values_that_are_not_finite(side):
    finding = check_sampled(side(ROWS), batch([ROWS[0], [math.nan, -2.5]]))
    subclass = "forced decode does not reproduce sampling"
    assert kind(finding) == ("execution", subclass, "sampled_against_forced")
    assert (finding.evidence["max_abs_difference"], finding.evidence["mean_abs_difference"]) == (None, None)
    first = dict(finding.evidence["first"])
    assert first == {"sequence": "s1", "position": 0, "rank": 0, "forced_logp": -1.5, "sampled_logp": None}
    same = [[-math.inf, -2.0, -3.0], ROWS[1]]
    finding = check_sampled(side(same), batch([same[0], [-1.5, -2.25]]))
    assert finding.evidence["tokens_unequal"] == 1
    assert finding.evidence["max_abs_difference"] is None  # of infinities that are equal the difference is no number


def test_the_finding_of_replicas_that_disagree(contract, side):
    rows = [[-1.0], [-3.0, -4.0], [-1.0], [-3.5, -4.0], [-1.0], [-math.inf, -4.25]]
    left = side(rows, sequences=[0, 1] * 3, ranks=[0, 0, 1, 1, 2, 2], world=3)
    result, _ = compare(left, side([[-1.0], [-3.0, -4.0]]), contract)
    finding = only(result.findings, "replicas_bitwise_equal")
    assert kind(finding) == ("reduction", "replicas disagree", "replicas_bitwise_equal")
    assert {**finding.evidence, "first": dict(finding.evidence["first"])} == {
        "side": "rollout",
        "sequences_replicated": 2,
        "sequences_disagreeing": 1,
        "tokens_compared": 6,
        "tokens_unequal": 3,
        "max_abs_difference": None,
        "first": {"sequence": "s1", "position": 0, "ranks": (0, 1), "logprobs": (-3.0, -3.5)},
    }
    assert "rollout" in finding.advice
    infinite = side([[-math.inf], [-1.0]], sequences=[0, 0], ranks=[0, 1], world=2)
    result, _ = compare(infinite, side([[-1.0]]), contract)
    assert only(result.findings, "replicas_bitwise_equal").evidence["first"]["logprobs"] == ("-inf", -1.0)


def test_the_finding_of_ranks_of_several_dtypes(contract, side):
    mixed = side([[-1.0], [-2.0]], dtype=["bfloat16", "float32"], world=2, ranks=[0, 1])
    result, _ = compare(side([[-1.0], [-2.0]]), evolve(mixed, ranks=mixed.ranks[::-1]), contract)
    finding = only(result.findings, "compute_dtype_by_rank")
    assert kind(finding) == ("representation", "ranks disagree about the compute dtype", "compute_dtype_by_rank")
    assert list(finding.evidence["compute_dtype"].items()) == [("0", "bfloat16"), ("1", "float32")]
    assert (finding.evidence["side"], finding.evidence["judged_as"]) == ("training", "bfloat16")


def test_a_pass_is_not_searched_for_a_shift(contract, side):
    wide = evolve(contract, max_abs_dlogp={"float32": 100.0})
    rollout = -np.random.default_rng(0).exponential(2.5, 20).astype(np.float32)
    sides = side([rollout.tolist()]), side([np.roll(rollout, 1).tolist()])
    assert compare(*sides, wide)[0].status is Status.PASS
    assert "off_by_one_shift" not in [item.rule for item in compare(*sides, wide)[0].findings]
    assert "off_by_one_shift" in [item.rule for item in compare(*sides, contract)[0].findings]


# verdicts


def test_reasons_of_verdicts(contract, side):
    passed, _ = compare(side([[-1.0]]), side([[-1.0]]), contract)
    assert passed.reason == ""
    failing, _ = compare(side([[-1.0], [-1.0, -2.0]]), side([[-1.0], [-1.0, -2.5]]), contract)
    threshold = "exceeds the float32 threshold 0.000976562 in sequence 's1' at position 1"
    assert failing.reason == f"max_abs_dlogp 0.5 {threshold}"
    none, _ = compare(side([[-1.0]], dtype="float8"), side([[-1.0]]), contract)
    assert none.reason == "contract made-up 1 has no max_abs_dlogp row for compute dtype 'float8'"
    unknown, _ = compare(side([[-1.0]], dtype=""), side([[-1.0]]), contract)
    assert unknown.reason == "contract made-up 1 has no max_abs_dlogp row for an unknown compute dtype"
    wide = evolve(contract, max_abs_dlogp={"float32": 1e6})
    beyond, _ = compare(side([[-0.5]]), side([[-900.0]]), wide)
    assert beyond.reason == ("beyond the float range: k3_reverse, token_mult_prob_error in sequence 's0' at position 0")


def test_the_limit_of_the_baseline_row_itself_is_within_it(contract, side):
    result, _ = compare(side([[-0.0]]), side([[2.0**-10]]), contract, baseline_dtype="float32")
    assert result.metrics["max_abs_dlogp"] == LIMIT
    assert result.within_baseline_row is True


def test_of_equally_bad_comparisons_the_first_is_the_worse(contract, side):
    for one in ([[-1.0]], [[-2.0]], [[math.nan]]):
        a, b = (compare(side([[-1.0]]), side(one), contract)[0] for _ in range(2))
        assert worse(a, b) is a
        assert worse(b, a) is b
    bare = Comparison(status=Status.FAIL, contract=contract.ref)
    full, _ = compare(side([[-1.0]]), side([[-2.0]]), contract)
    assert worse(full, bare) is worse(bare, full) is bare


def test_what_is_judged_carries_its_own_numbers(contract, side):
    _, tokens = compare(side([[-1.0, -2.0]]), side([[-1.0, -2.5]]), contract)
    base = Comparison(status=Status.INVALID_ARTIFACT, contract=contract.ref)
    result = judged(base, TokenPairs(tokens), row("float32", contract), (0.5, 2.0))
    assert (result.active_tokens, result.clip_interval, result.within_baseline_row) == (2, (0.5, 2.0), None)
    assert (result.status, result.contract) == (Status.FAIL, contract.ref)


def test_other_clip_ranges_and_baselines_reach_both_verdicts_of_the_production_case(contract, side):
    sampled = batch([ROWS[0], [-1.5, -2.5 + math.log(1.5)]])
    options = {"baseline_dtype": "bfloat16", "clip_range": (0.5, 1.25)}
    result, _ = compare_sampled(side(ROWS), side(ROWS), sampled, contract, **options)
    assert (result.baseline_dtype, result.within_baseline_row, result.clip_interval) == ("bfloat16", False, (0.5, 1.25))
    assert result.metrics["clipfrac0"] == 0.0  # r = 1 / 1.5 lies inside; the contract's own interval ends at 0.75
    assert compare_sampled(side(ROWS), side(ROWS), sampled, contract)[0].metrics["clipfrac0"] == 0.2


def test_two_of_one_status_and_one_of_another_make_one_sentence():
    first, second = Defect(Status.INVALID_ARTIFACT, "one"), Defect(Status.INVALID_ARTIFACT, "two")
    found = named([Defect(Status.INVALID_IDENTITY, "three"), first, second])
    assert found == Defect(Status.INVALID_ARTIFACT, "one; two; also invalid_identity: three")


# places


@pytest.mark.parametrize(
    ("at", "place"), [(0, "'s0' at position 0"), (2, "'s0' at position 2"), (3, "'s1' at position 0")]
)
@pytest.mark.parametrize(
    ("value", "said"),
    [(math.nan, "not finite, first nan"), (0.5, "above 0.001, first 0.5"), (-math.inf, "not finite, first -inf")],
)
def test_a_wrong_value_is_named_with_side_count_and_place(side, at, place, value, said):
    values = [-1.0, -2.0, -3.0, -1.5, -2.5]
    values[at] = value
    held = side([values[:3], values[3:]])
    ids = ordered_ids(held.sequence_ids)
    (defect,) = value_defects(ids, "training", side_rows(held.samples, held.sequence_ids, ids))
    assert defect.reason == f"1 of 5 active training logprobs are {said} in sequence {place} on rank 0"


def test_a_logprob_is_positive_above_the_bound_and_not_at_it():
    bound, above = 1e-3, math.nextafter(1e-3, 1.0)
    for dtype in (np.float32, np.float64):
        assert positive(np.array([bound, -1.0, math.nan, math.inf], dtype)).tolist() == [False] * 4
    assert positive(np.array([above, np.float32(1.001e-3)])).tolist() == [True, True]


def test_most_arrays_are_sound_at_a_glance():
    assert sound(np.zeros(0)) and sound(np.array([-1e300, 0.0, 1e-3]))
    for value in (math.nan, math.inf, -math.inf, math.nextafter(1e-3, 1.0)):
        assert not sound(np.array([-1.0, value, -2.0]))


def changed(side_result, **arrays):
    return evolve(side_result, samples=Samples(**{**side_result.samples.arrays(), **arrays}))


def reasons(result):
    return [defect.reason for defect in artifact_defects("rollout", result)]


def test_missing_and_strange_rows_are_named_up_to_five(side):
    whole = side([[-1.0]] * 9)
    assert not reasons(whole)
    names = [f"s{index}" for index in range(9)]
    assert reasons(side([[-1.0]] * 4, ids=names)) == ["rollout lacks sequence 's4', 's5', 's6', 's7', 's8'"]
    six = "'s3', 's4', 's5', 's6', 's7' and 1 more"
    assert reasons(side([[-1.0]] * 3, ids=names)) == [f"rollout lacks sequence {six}"]
    twice = changed(whole, sequence=[0, 0, 2, 3, 4, 5, 6, 7, 8])
    assert reasons(twice) == ["rollout lacks sequence 's1'", "rollout has sequence 's0' twice on rank 0"]
    below = changed(whole, sequence=[-1, -1, 2, 3, 4, 5, 6, 7, 8])
    assert reasons(below) == [
        "rollout has rows of sequence index -1 but 9 sequence ids",
        "rollout lacks sequence 's0', 's1'",
        "rollout has sequence index -1 twice on rank 0",
    ]
    above = changed(whole, sequence=[0, 1, 2, 3, 4, 5, 6, 9, 9])
    assert reasons(above) == [
        "rollout has rows of sequence index 9 but 9 sequence ids",
        "rollout lacks sequence 's7', 's8'",
        "rollout has sequence index 9 twice on rank 0",
    ]


def test_ranks_that_are_not_what_was_launched_are_named(side):
    whole = side([[-1.0]] * 8, world=8, ranks=range(8))
    assert not reasons(whole)
    few = evolve(whole, ranks=whole.ranks[:1])
    assert reasons(few) == [
        "rollout lacks rank 1, 2, 3, 4, 5 and 2 more of 8",
        "rollout has rows of rank 1, 2, 3, 4, 5 and 2 more without metadata",
    ]
    more = evolve(whole, expected_ranks=6)
    assert reasons(more) == ["rollout has rank 6, 7 but launched 6"]
    twice = evolve(whole, ranks=(*whole.ranks, whole.ranks[3], whole.ranks[1]))
    assert reasons(twice) == ["rollout has rank 1, 3 more than once"]
    sizes = evolve(whole, ranks=(evolve(whole.ranks[0], world_size=4), *whole.ranks[1:]))
    assert reasons(sizes) == ["rollout ranks disagree about the world size: [4, 8]"]
    none = evolve(side([[-1.0]]), expected_ranks=0)
    assert reasons(none) == ["rollout launched 0 ranks", "rollout has rank 0 but launched 0"]
    assert not reasons(evolve(side([[-1.0]]), expected_ranks=1))
    names = side([[-1.0]] * 3, ids=["a", "a", "b"])
    assert reasons(names) == ["rollout has sequence id 'a' more than once"]


def test_the_same_sequence_on_two_ranks_is_no_fault(side):
    assert not reasons(side([[-1.0]] * 4, sequences=[0, 1, 1, 0], ranks=[0, 0, 1, 1], world=2))
    again = side([[-1.0]] * 4, sequences=[1, 0, 1, 0], ranks=[1, 0, 1, 1], world=2)
    assert reasons(again) == ["rollout has sequence 's1' twice on rank 1"]


# batches


def test_a_batch_without_a_weight_version_asks_for_none(side):
    tokens = batch()
    held = side(ROWS)
    held = evolve(held, identity=evolve(held.identity, token_digest=tokens.digest(), weight_version="7"))
    assert not frozen_defects("rollout", held, frozen_tokens(tokens))
    newer = frozen_tokens(batch(weight_version="8"))
    found = [defect.reason for defect in frozen_defects("rollout", held, newer)]
    assert "weight_version differs: the tokens were recorded with '8', rollout has '7'" in found


def test_rows_of_sequences_that_do_not_exist_are_another_batch(side):
    for index in (-1, 2):
        held = changed(side(ROWS), sequence=[0, index])
        with pytest.raises(ArtifactError, match=r"^the sampled batch has other sequences"):
            with_sampled_logprobs(held, batch(ROWS))


def test_what_differs_between_batch_and_rollout_is_said(side):
    with pytest.raises(ArtifactError, match=r"^the responses of the sampled batch have other lengths.* scored$"):
        with_sampled_logprobs(side([ROWS[0], [-1.5]]), batch(ROWS))
    with pytest.raises(ArtifactError, match=r"^the responses of the sampled batch are other tokens.* scored$"):
        with_sampled_logprobs(side(ROWS), batch(ROWS, responses=[[10, 11, 12], [10, 99]]))


def test_an_empty_batch_samples_nothing(side):
    empty = TokenBatch(ids=[], prompts=[], responses=[], action_masks=[], sampled_logprobs=[])
    assert len(with_sampled_logprobs(side([]), empty).samples.logprobs) == 0
