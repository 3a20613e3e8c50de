"""Everything that makes a pair incomparable, and the traps of other tools."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from attrs import evolve

from xcfg.comparator.compare import compare
from xcfg.model.identity import LogprobSemantics
from xcfg.model.kernel import BoundKernel
from xcfg.model.provenance import KnobProvenance, KnobState
from xcfg.model.sample import Samples
from xcfg.model.status import Status

ROWS = [[-1.0, -2.0, -3.0], [-1.5, -2.5], [-0.5]]


def replaced(side, **arrays):
    """The side with some arrays replaced; its logprobs are a copy, as two runs never share memory."""
    copied = {**side.samples.arrays(), "logprobs": side.samples.logprobs.copy()}
    return evolve(side, samples=Samples(**{**copied, **arrays}))


def changed(array, at, value):
    copy = array.copy()
    copy[at] = value
    return copy


def both_ways(contract, a, b):
    """The comparison with the sides in either role: a defect is found on whichever side it lies."""
    return [compare(a, b, contract), compare(b, a, contract)]


# provenance


@pytest.mark.parametrize("state", [KnobState.MISMATCH, KnobState.UNOBSERVABLE, KnobState.UNSUPPORTED])
def test_a_knob_that_is_not_proven_invalidates(contract, side, state):
    knob = KnobProvenance(requested="FLASH", materialized="FLASH", observed="CPU", state=state, reason="ignored")
    bad = side(ROWS, knobs={"rollout.attention_backend": knob})
    result, tokens = compare(bad, side(ROWS), contract)
    assert (result.status, tokens, dict(result.metrics)) == (Status.INVALID_PROVENANCE, None, {})
    for part in ("rollout.attention_backend", "rollout knob", "'FLASH'", "'CPU'", "ignored", state.value):
        assert part in result.reason
    assert "training knob" in compare(side(ROWS), bad, contract)[0].reason


def test_a_knob_called_applied_whose_values_differ_is_not_believed(contract, side):
    knob = KnobProvenance(requested=2, materialized=2, observed=1, state=KnobState.APPLIED)
    result, _ = compare(side(ROWS, knobs={"rollout.tensor_parallel_size": knob}), side(ROWS), contract)
    assert result.status is Status.INVALID_PROVENANCE


def test_inapplicable_and_engine_chosen_knobs_are_sound(contract, side):
    knobs = {
        "layout.padding_side": KnobProvenance(state=KnobState.INAPPLICABLE, reason="ragged engine"),
        "rollout.attention_backend": KnobProvenance(materialized="CPU", observed="CPU", state=KnobState.APPLIED),
    }
    assert compare(side(ROWS, knobs=knobs), side(ROWS), contract)[0].status is Status.PASS


def test_an_operator_that_fell_back_invalidates(contract, side):
    bound = BoundKernel(backend="triton", concrete="torch.log_softmax", fallback=True)
    bad = side(ROWS)
    bad = evolve(bad, provenance=evolve(bad.provenance, operators={"selected_logprob": bound}))
    for result, _ in both_ways(contract, bad, side(ROWS)):
        assert result.status is Status.INVALID_PROVENANCE
        assert "torch.log_softmax" in result.reason


# artifacts


def test_a_missing_rank_invalidates(contract, side):
    whole = side(ROWS, world=2, ranks=[0, 1, 0])
    for result, _ in both_ways(contract, evolve(whole, ranks=whole.ranks[:1]), side(ROWS)):
        assert result.status is Status.INVALID_ARTIFACT
        assert "lacks rank 1 of 2" in result.reason


def test_a_rank_twice_or_never_launched_invalidates(contract, side):
    whole = side(ROWS, world=2, ranks=[0, 1, 0])
    twice, _ = compare(side(ROWS), evolve(whole, ranks=(*whole.ranks, whole.ranks[0])), contract)
    assert (twice.status, "rank 0 more than once" in twice.reason) == (Status.INVALID_ARTIFACT, True)
    extra, _ = compare(side(ROWS), evolve(whole, expected_ranks=1), contract)
    assert (extra.status, "launched 1" in extra.reason) == (Status.INVALID_ARTIFACT, True)
    none, _ = compare(side(ROWS), evolve(side(ROWS), ranks=(), expected_ranks=0), contract)
    assert none.status is Status.INVALID_ARTIFACT


def test_rows_of_a_rank_without_metadata_invalidate(contract, side):
    result, _ = compare(side(ROWS, ranks=[0, 0, 7]), side(ROWS), contract)
    assert (result.status, "rank 7" in result.reason) == (Status.INVALID_ARTIFACT, True)


def test_ranks_that_disagree_about_the_world_size_invalidate(contract, side):
    whole = side(ROWS, world=2, ranks=[0, 1, 0])
    ranks = (whole.ranks[0], evolve(whole.ranks[1], world_size=4))
    result, _ = compare(evolve(whole, ranks=ranks), side(ROWS), contract)
    assert (result.status, "world size" in result.reason) == (Status.INVALID_ARTIFACT, True)


def test_a_dropped_sequence_is_never_compared_on_the_intersection(contract, side):
    dropped = side(ROWS[:2], ids=["s0", "s1", "s2"])
    for result, tokens in both_ways(contract, dropped, side(ROWS)):
        assert (result.status, tokens) == (Status.INVALID_ARTIFACT, None)
        assert "'s2'" in result.reason


def test_a_sequence_twice_on_one_rank_or_out_of_range_invalidates(contract, side):
    rows = [*ROWS, ROWS[1]]
    twice, _ = compare(side(rows, sequences=[0, 1, 2, 1]), side(ROWS), contract)
    assert (twice.status, "'s1' twice on rank 0" in twice.reason) == (Status.INVALID_ARTIFACT, True)
    strange, _ = compare(side(ROWS, sequences=[0, 1, 5], ids=["s0", "s1"]), side(ROWS[:2]), contract)
    assert (strange.status, "index 5" in strange.reason) == (Status.INVALID_ARTIFACT, True)
    ids, _ = compare(side(ROWS, ids=["s0", "s0", "s2"]), side(ROWS), contract)
    assert (ids.status, "'s0' more than once" in ids.reason) == (Status.INVALID_ARTIFACT, True)


def test_a_positive_logprob_beyond_rounding_invalidates(contract, side):
    rounding = [[1e-3, -2.0, -3.0], *ROWS[1:]]
    assert compare(side(rounding), side(rounding), contract)[0].status is Status.PASS
    beyond = [[-1.0, -2.0, -3.0], [-1.5, 1.1e-3], [-0.5]]
    for result, tokens in both_ways(contract, side(beyond), side(ROWS)):
        assert (result.status, "'s1' at position 1" in result.reason) == (Status.INVALID_ARTIFACT, True)
        assert len(tokens.sequence) == 6
        assert not result.metrics


def test_an_artifact_fault_outranks_the_others_and_all_are_named(contract, side):
    knob = KnobProvenance(requested=1, state=KnobState.UNOBSERVABLE)
    whole = side(ROWS, world=2, ranks=[0, 1, 0], knobs={"batch.size": knob})
    other = side(ROWS)
    other = evolve(other, identity=evolve(other.identity, checkpoint_digest="e" * 64))
    result, _ = compare(evolve(whole, ranks=whole.ranks[:1]), other, contract)
    assert result.status is Status.INVALID_ARTIFACT
    assert "also invalid_provenance: rollout knob batch.size" in result.reason
    assert "also invalid_identity: checkpoint_digest" in result.reason


# identity


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("checkpoint_digest", "x" * 64),
        ("checkpoint_digest", ""),
        ("checkpoint_revision", "main"),
        ("weight_version", "7"),
        ("tokenizer_digest", "x" * 64),
        ("tokenizer_digest", ""),
        ("token_digest", "x" * 64),
        ("token_digest", ""),
        ("optimizer_steps", 1),
        ("state_after", "x" * 64),
        ("state_before", ""),
    ],
)
def test_a_field_of_the_identity_that_differs_invalidates(contract, side, name, value):
    bad = side(ROWS)
    bad = evolve(bad, identity=evolve(bad.identity, **{name: value}))
    for result, tokens in both_ways(contract, bad, side(ROWS)):
        assert (result.status, tokens) == (Status.INVALID_IDENTITY, None)
        assert ("state_digest" if name.startswith("state") else name) in result.reason


@pytest.mark.parametrize("name", ["checkpoint_digest", "tokenizer_digest", "token_digest"])
def test_unknown_on_both_sides_is_not_equal(contract, side, name):
    blank = side(ROWS)
    blank = evolve(blank, identity=evolve(blank.identity, **{name: ""}))
    result, _ = compare(blank, evolve(blank, samples=side(ROWS).samples), contract)
    assert (result.status, name in result.reason) == (Status.INVALID_IDENTITY, True)


def test_optimizer_steps_on_both_sides_still_invalidate(contract, side):
    stepped = side(ROWS)
    identity = evolve(stepped.identity, optimizer_steps=3)
    result, _ = compare(evolve(stepped, identity=identity), evolve(side(ROWS), identity=identity), contract)
    assert result.status is Status.INVALID_IDENTITY


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "processed"),
        ("temperature", 0.6),
        ("temperature", math.nan),
        ("top_k", 5),
        ("top_p", 0.9),
        ("min_p", 0.1),
        ("penalties", {"repetition": 1.1}),
        ("logit_scale", 2.0),
        ("logit_softcap", 30.0),
        ("vocab_size", 128),
        ("vocab_size", 0),
    ],
)
def test_each_field_of_the_logprob_semantics_is_compared(contract, side, name, value):
    bad = side(ROWS)
    semantics = evolve(bad.identity.semantics, **{name: value})
    bad = evolve(bad, identity=evolve(bad.identity, semantics=semantics))
    for result, _ in both_ways(contract, bad, side(ROWS)):
        assert (result.status, f"semantics.{name}" in result.reason) == (Status.INVALID_IDENTITY, True)


def test_a_vocabulary_unknown_on_both_sides_is_not_equal(contract, side):
    identity = evolve(side(ROWS).identity, semantics=LogprobSemantics())
    result, _ = compare(side(ROWS, identity=identity), side(ROWS, identity=identity), contract)
    assert (result.status, "vocab_size is unknown" in result.reason) == (Status.INVALID_IDENTITY, True)


def test_other_token_ids_are_named_with_index_and_both_values(contract, side):
    good = side(ROWS)
    bad = replaced(good, input_ids=changed(good.samples.input_ids, 5 + 3 + 1, 99))  # s1: prompt of 3, response index 1
    result, _ = compare(good, bad, contract)
    assert result.status is Status.INVALID_IDENTITY
    assert "input_ids differs in sequence 's1' at index 4 (response index 1)" in result.reason
    assert "rollout rank 0 11, training rank 0 99" in result.reason
    prompt = replaced(good, input_ids=changed(good.samples.input_ids, 0, 7))
    assert "'s0' at index 0 (prompt)" in compare(good, prompt, contract)[0].reason


def test_other_masks_lengths_and_positions_are_named(contract, side):
    good = side(ROWS)
    mask = replaced(good, action_mask=changed(good.samples.action_mask, 4, False))
    result, _ = compare(good, mask, contract)
    assert result.status is Status.INVALID_IDENTITY
    assert "action_mask differs in sequence 's1' at index 1 of the response: rollout rank 0 True" in result.reason
    position = replaced(good, position_ids=changed(good.samples.position_ids, 1, 9))
    result, _ = compare(good, position, contract)
    assert "position_ids differs in sequence 's0' at index 1 (prompt)" in result.reason
    shorter = side([ROWS[0], ROWS[1], [-0.5, -0.5]])
    for result, _ in both_ways(contract, good, shorter):
        assert result.status is Status.INVALID_IDENTITY
        assert "response_length differs in sequence 's2'" in result.reason


def test_a_prompt_token_in_the_mask_is_an_identity_fault(contract, side, rows_of):
    good = side([[-1.0, -2.0]], prompts=[3], tokens=[[8, 9]])
    # the same five tokens, the last prompt token scored as if it were the response's first
    shifted = side([[-4.0, -1.0, -2.0]], prompts=[2], tokens=[[1, 8, 9]])
    for result, tokens in both_ways(contract, good, shifted):
        assert (result.status, tokens) == (Status.INVALID_IDENTITY, None)
        assert "prompt_length differs in sequence 's0'" in result.reason


def test_a_response_that_does_not_start_behind_its_prompt_is_found_even_on_both_sides(contract, side):
    good = side([[-1.0, -2.0]], prompts=[3])
    early = replaced(good, position_ids=np.array([0, 1, 2, 2, 3]))
    result, _ = compare(early, replaced(early), contract)
    assert result.status is Status.INVALID_IDENTITY
    assert "starts at position 2, its prompt has 3 tokens" in result.reason


def test_positions_unknown_on_both_sides_are_assumed_on_one_side_not_equal(contract, side):
    good = side(ROWS)
    blank = np.full(len(good.samples.position_ids), -1)
    unknown = [replaced(side(ROWS), position_ids=blank) for _ in range(2)]
    result, _ = compare(*unknown, contract)
    assert (result.status, result.assumed) == (Status.PASS, ("position_ids",))
    for result, _ in both_ways(contract, unknown[0], good):
        assert (result.status, "position_ids" in result.reason) == (Status.INVALID_IDENTITY, True)


# traps seen in other tools


def test_empty_input_is_no_pass(contract, side):
    result, tokens = compare(side([]), side([]), contract)
    assert (result.status, tokens, dict(result.metrics)) == (Status.ZERO_ACTIVE_TOKENS, None, {})


def test_disjoint_input_is_no_pass(contract, side):
    result, tokens = compare(side(ROWS, ids=["a", "b", "c"]), side(ROWS, ids=["x", "y", "z"]), contract)
    assert (result.status, tokens) == (Status.INVALID_IDENTITY, None)
    assert "'a' (3 in all) only on the rollout side" in result.reason


def test_only_the_intersection_is_never_compared(contract, side):
    for result, _ in both_ways(contract, side(ROWS[:2]), side(ROWS)):
        assert (result.status, "'s2' (1 in all)" in result.reason) == (Status.INVALID_IDENTITY, True)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_not_replaced(contract, side, value):
    bad = [ROWS[0], [-1.5, value], ROWS[2]]
    for result, tokens in both_ways(contract, side(bad), side(ROWS)):
        assert (result.status, dict(result.metrics), result.worst) == (Status.NON_FINITE, {}, None)
        assert "1 of 6 active" in result.reason
        assert "'s1' at position 1" in result.reason
        assert len(tokens.sequence) == result.active_tokens == 6
    same, _ = compare(side(bad), side(bad), contract)
    assert same.status is Status.NON_FINITE


def test_missing_logprobs_cannot_be_padded(side):
    good = side(ROWS)
    with pytest.raises(ValueError, match="must hold 6 tokens"):
        replaced(good, logprobs=good.samples.logprobs[:-1])


def test_zeros_in_a_row_are_found(contract, side):
    padded = [[-1.0, 0.0, 0.0, 0.0], *ROWS[1:]]
    rollout = [[-1.0, -2.0, -3.0, -4.0], *ROWS[1:]]
    result, _ = compare(side(rollout), side(padded), contract)
    assert result.status is Status.FAIL
    assert "exact_zero_logprobs" in [item.rule for item in result.findings]


def test_an_empty_mask_gives_no_metric(contract, side):
    masks = [[False] * len(row) for row in ROWS]
    result, tokens = compare(side(ROWS, masks=masks), side(ROWS, masks=masks), contract)
    assert (result.status, tokens, dict(result.metrics)) == (Status.ZERO_ACTIVE_TOKENS, None, {})
    assert "none of 6" in result.reason


def test_the_training_side_is_never_the_rollout_in_disguise(contract, side):
    rollout = side(ROWS)
    result, _ = compare(rollout, evolve(side(ROWS), samples=rollout.samples), contract)
    assert result.status is Status.INVALID_ARTIFACT
    assert "not two measurements" in result.reason
    options = set(inspect.signature(compare).parameters)
    assert options == {"rollout", "training", "contract", "baseline_dtype", "clip_range", "frozen"}


def test_ranks_are_not_averaged_without_weights(contract, side):
    # rank 0 holds one token off by 1, rank 1 nine tokens off by 0: the mean is 0.1, not 0.5
    rollout = side([[-2.0], [-2.0] * 9], world=2, ranks=[0, 1])
    training = side([[-1.0], [-2.0] * 9], world=2, ranks=[0, 1])
    result, _ = compare(rollout, training, contract)
    assert result.metrics["mean_abs_dlogp"] == pytest.approx(0.1, rel=1e-12)
    assert [item.metrics["mean_abs_dlogp"] for item in result.per_rank] == [1.0, 0.0]


@pytest.mark.parametrize(("role", "name"), [("rollout", "rollout.dtype"), ("training", "training.compute_dtype")])
def test_a_rank_that_computed_in_another_dtype_than_its_knob_was_observed_with(side, contract, role, name):
    proven = {
        name: KnobProvenance(requested="float32", materialized="float32", observed="float32", state=KnobState.APPLIED)
    }
    honest, other = side(ROWS, knobs=proven), side(ROWS)
    lying = evolve(honest, ranks=[evolve(info, compute_dtype="bfloat16") for info in honest.ranks])
    order = (lambda one: (one, other)) if role == "rollout" else (lambda one: (other, one))
    assert compare(*order(honest), contract)[0].status is Status.PASS
    found = compare(*order(lying), contract)[0]
    assert found.status is Status.INVALID_PROVENANCE and name in found.reason
