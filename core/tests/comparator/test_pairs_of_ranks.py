"""Rows of several ranks put together: who is compared with whom, and where a defect of a row lies."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from attrs import evolve

from xcfg.comparator.compare import compare
from xcfg.model.kernel import BoundKernel
from xcfg.model.provenance import KnobProvenance, KnobState
from xcfg.model.sample import Samples
from xcfg.model.status import Status


@pytest.fixture(autouse=True)
def no_warnings():
    """What a side recorded is told in a result, never by a warning of numpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def changed(held, **arrays):
    """The side with some arrays replaced; its logprobs are a copy, as two runs never share memory."""
    fields = {**held.samples.arrays(), "logprobs": held.samples.logprobs.copy()}
    return evolve(held, samples=Samples(**{**fields, **arrays}))


def at(array, place, value):
    copy = array.copy()
    copy[place] = value
    return copy


def table(result):
    return [(item.rollout_rank, item.train_rank, item.active_tokens) for item in result.per_rank]


def test_a_pair_of_ranks_is_one_group_however_many_sequences_it_shares(contract, side):
    rows = [[-1.0], [-1.0, -2.0], [-1.0], [-1.0], [-1.0, -2.0, -3.0]]
    rollout = side(rows, ranks=[0, 0, 0, 1, 1], world=2)
    training = side(rows, ranks=[0, 1, 1, 1, 1], world=2)
    assert table(compare(rollout, training, contract)[0]) == [(0, 0, 1), (0, 1, 3), (1, 1, 4)]
    assert table(compare(training, rollout, contract)[0]) == [(0, 0, 1), (1, 0, 3), (1, 1, 4)]


def test_the_worst_replica_is_found_behind_a_pair_of_ranks_without_active_tokens(contract, side):
    rows = [[-1.0], [-2.0], [-2.5]]
    masks = [[False], [True], [True]]
    rollout = side(rows, masks=masks, sequences=[0, 1, 1], ranks=[0, 1, 2], prompts=[2, 3, 3], world=3)
    training = side([[-1.0], [-2.0]], masks=masks[:2])
    result, tokens = compare(rollout, training, contract)
    assert (result.metrics["max_abs_dlogp"], tokens.rollout_rank.tolist()) == (0.5, [2])
    assert table(result) == [(0, 0, 0), (1, 0, 1), (2, 0, 1)]
    assert dict(result.per_rank[0].metrics) == {}


def test_the_worst_replica_of_each_sequence_is_its_own(contract, side):
    masks = [[False], [True], [True, True]] * 2
    rows = [[-1.0], [-2.0], [-3.0, -4.0], [-1.0], [-2.5], [-3.0, -4.0]]
    rollout = side(rows, masks=masks, sequences=[0, 1, 2] * 2, ranks=[0, 0, 0, 1, 1, 1], world=2)
    training = side([[-1.0], [-2.0], [-3.25, -4.0]], masks=masks[:3])
    _, tokens = compare(rollout, training, contract)
    assert tokens.sequence.tolist() == [1, 2, 2]
    assert tokens.rollout_rank.tolist() == [1, 0, 0]


def test_sequences_on_one_rank_only_are_not_counted_as_replicated(contract, side):
    rows = [[-1.0], [-2.0, -3.0], [-2.0, -3.5], [-4.0]]
    rollout = side(rows, sequences=[0, 1, 1, 2], ranks=[0, 0, 1, 1], prompts=[2, 3, 3, 2], world=2)
    result, _ = compare(rollout, side([[-1.0], [-2.0, -3.0], [-4.0]], prompts=[2, 3, 2]), contract)
    (finding,) = [item for item in result.findings if item.rule == "replicas_bitwise_equal"]
    evidence = finding.evidence
    assert (evidence["sequences_replicated"], evidence["sequences_disagreeing"]) == (1, 1)
    assert (evidence["tokens_compared"], evidence["max_abs_difference"]) == (2, 0.5)
    assert evidence["first"]["position"] == 1


@pytest.mark.parametrize("value", [math.nan, -math.inf, math.inf])
def test_values_that_are_not_finite_on_every_replica_are_no_warning(contract, side, value):
    twice = side([[-1.0, value], [-1.0, value]], sequences=[0, 0], ranks=[0, 1], world=2)
    result, _ = compare(twice, side([[-1.0, value]]), contract)
    assert result.status is Status.NON_FINITE
    other = side([[-1.0, value], [-1.0, -value]], sequences=[0, 0], ranks=[0, 1], world=2)
    assert compare(other, side([[-1.0, value]]), contract)[0].status is Status.NON_FINITE


def test_any_bits_of_a_replica_are_no_warning(contract, side):
    """A signalling NaN, which raises a flag of the processor when it is converted."""
    held = side([[-1.0, -2.0], [-1.0, -2.5]], sequences=[0, 0], ranks=[0, 1], world=2)
    logprobs = held.samples.logprobs.copy()
    logprobs.view(np.uint32)[3] = 0x7FA00000
    result, _ = compare(changed(held, logprobs=logprobs), side([[-1.0, -2.0]]), contract)
    assert result.status is Status.NON_FINITE
    (finding,) = [item for item in result.findings if item.rule == "replicas_bitwise_equal"]
    assert (finding.evidence["tokens_unequal"], finding.evidence["max_abs_difference"]) == (1, None)


# where a defect lies


def test_the_first_token_of_a_response_is_index_0_of_it(contract, side):
    good = side([[-1.0, -2.0], [-1.0]])
    bad = changed(good, input_ids=at(good.samples.input_ids, 2, 99))
    result, _ = compare(good, bad, contract)
    assert result.reason == (
        "input_ids differs in sequence 's0' at index 2 (response index 0): rollout rank 0 10, training rank 0 99"
    )
    second = changed(good, input_ids=at(good.samples.input_ids, 4, 99))
    assert (
        "in sequence 's1' at index 0 (prompt): rollout rank 0 1, training" in compare(good, second, contract)[0].reason
    )


def test_lengths_masks_and_positions_that_differ_are_said_in_full(contract, side):
    good = side([[-1.0, -2.0], [-1.0, -2.0]])
    longer = side([[-1.0, -2.0], [-1.0, -2.0, -3.0]])
    assert compare(good, longer, contract)[0].reason == (
        "response_length differs in sequence 's1': rollout rank 0 2, training rank 0 3"
    )
    prompt = side([[-1.0, -2.0], [-1.0, -2.0]], prompts=[2, 5])
    assert compare(good, prompt, contract)[0].reason == (
        "prompt_length differs in sequence 's1': rollout rank 0 3, training rank 0 5"
    )
    masked = changed(good, action_mask=at(good.samples.action_mask, 2, False))
    assert compare(good, masked, contract)[0].reason == (
        "action_mask differs in sequence 's1' at index 0 of the response: rollout rank 0 True, training rank 0 False"
    )
    moved = changed(good, position_ids=at(good.samples.position_ids, 4, 7))
    assert compare(good, moved, contract)[0].reason == (
        "position_ids differs in sequence 's1' at index 0 (prompt): rollout rank 0 0, training rank 0 7"
    )


def test_a_response_that_starts_elsewhere_than_its_prompt_ends_is_named_on_each_side(contract, side):
    sides = [side([[-1.0], [], [-1.0]]) for _ in range(2)]
    # inputs: 2 + 1, 3 + 0, 4 + 1 tokens; the response of s2 starts at place 3 + 3 + 4
    late = [changed(one, position_ids=at(one.samples.position_ids, 10, 9)) for one in sides]
    result, _ = compare(*late, contract)
    said = "starts at position 9, its prompt has 4 tokens"
    assert result.reason == "; ".join(
        f"position_ids: the response of sequence 's2' on {name} rank 0 {said}" for name in ("rollout", "training")
    )
    assert compare(*[side([[-1.0], [], [-1.0]]) for _ in range(2)], contract)[0].status is Status.PASS


def test_a_replica_of_other_tokens_is_named_with_its_rank(contract, side):
    rows = [[-1.0], [-1.0], [-1.0]]
    held = side(rows, sequences=[0, 1, 1], ranks=[0, 0, 1], prompts=[2, 3, 3], world=2)
    bad = changed(held, input_ids=at(held.samples.input_ids, 10, 77))
    result, _ = compare(bad, side([[-1.0], [-1.0]], prompts=[2, 3]), contract)
    assert result.reason == (
        "input_ids differs in sequence 's1' at index 3 (response index 0): rollout rank 0 10, rollout rank 1 77"
    )
    other, _ = compare(side([[-1.0], [-1.0]], prompts=[2, 3]), bad, contract)
    assert other.reason == (
        "input_ids differs in sequence 's1' at index 3 (response index 0): rollout rank 0 10, training rank 1 77"
    )


def test_states_and_steps_are_said_in_full(contract, side):
    good = side([[-1.0]])

    def reason(**fields):
        bad = side([[-1.0]])
        return compare(good, evolve(bad, identity=evolve(bad.identity, **fields)), contract)[0].reason

    assert "optimizer_steps: training took 2 optimizer steps before it scored" in reason(optimizer_steps=2)
    unproven = "state_digest: training does not prove its model state before and after scoring"
    assert reason(state_before="") == reason(state_after="") == reason(state_before="", state_after="") == unproven
    before, after = repr("s" * 64), repr("x")
    changed_state = f"state_digest: training model state changed while scoring: before {before}, after {after}"
    assert reason(state_after="x") == changed_state
    assert reason(weight_version="8") == "weight_version differs: rollout '', training '8'"
    assert reason(checkpoint_digest="") == f"checkpoint_digest differs: rollout {'c' * 64!r}, training ''"


def test_what_is_unknown_on_both_sides_is_said_once(contract, side):
    blank = [evolve(one, identity=evolve(one.identity, token_digest="")) for one in (side([[-1.0]]), side([[-1.0]]))]
    assert compare(*blank, contract)[0].reason == "token_digest is unknown on both sides, and unknown is not equal"
    free = [evolve(one, identity=evolve(one.identity, weight_version="")) for one in (side([[-1.0]]), side([[-1.0]]))]
    assert compare(*free, contract)[0].status is Status.PASS
    semantics = [evolve(one.identity.semantics, vocab_size=0) for one in free]
    none = [
        evolve(one, identity=evolve(one.identity, semantics=kept)) for one, kept in zip(free, semantics, strict=True)
    ]
    assert (
        compare(*none, contract)[0].reason == "semantics.vocab_size is unknown on both sides, and unknown is not equal"
    )


def test_ids_of_one_side_only_are_said_for_each_side(contract, side):
    result, _ = compare(side([[-1.0]] * 3, ids=["c", "a", "b"]), side([[-1.0]] * 2, ids=["z", "b"]), contract)
    assert result.reason == (
        "sequence_ids: 'a' (2 in all) only on the rollout side; sequence_ids: 'z' (1 in all) only on the training side"
    )


# provenance


def knob(requested=None, materialized=None, observed=None, state=KnobState.APPLIED, reason=""):
    return KnobProvenance(requested=requested, materialized=materialized, observed=observed, state=state, reason=reason)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (knob(2, 2, 1), "mismatch: requested 2, materialized 2, observed 1"),
        (knob(2, 1, 2), "mismatch: requested 2, materialized 1, observed 2"),
        (knob(1, 2, 2, reason="why"), "mismatch: requested 1, materialized 2, observed 2 (why)"),
        (knob(None, 1, 2), "mismatch: requested None, materialized 1, observed 2"),
        (knob(1, 1, None, KnobState.UNOBSERVABLE), "unobservable: requested 1, materialized 1, observed None"),
    ],
)
def test_a_knob_that_is_not_proven_is_said_in_full(contract, side, held, said):
    knobs = {"b.sound": knob(1, 1, 1), "a.knob": held}
    result, _ = compare(side([[-1.0]]), side([[-1.0]], knobs=knobs), contract)
    assert result.reason == f"training knob a.knob is {said}"


def test_knobs_and_operators_are_named_in_order(contract, side):
    knobs = {"b": knob(1, 1, 2), "a": knob(1, 1, 2)}
    held = side([[-1.0]], knobs=knobs)
    fallback = {"y": True, "fine": False, "x": True}
    bound = {
        name: BoundKernel(backend="triton", concrete=f"torch.{name}", fallback=fell) for name, fell in fallback.items()
    }
    held = evolve(held, provenance=evolve(held.provenance, operators=bound))
    result, _ = compare(held, side([[-1.0]]), contract)
    value = "mismatch: requested 1, materialized 1, observed 2"
    assert result.reason.split("; ") == [
        f"rollout knob a is {value}",
        f"rollout knob b is {value}",
        "rollout operator x fell back: backend triton ran as torch.x",
        "rollout operator y fell back: backend triton ran as torch.y",
    ]


@pytest.mark.parametrize(("dtype", "said"), [("bfloat16", "bfloat16"), ("", "an unknown dtype")])
def test_the_first_rank_of_another_dtype_than_the_knob_is_named(contract, side, dtype, said):
    knobs = {"training.compute_dtype": knob("float32", "float32", "float32")}
    rows = [[-1.0]] * 3
    held = side(rows, ranks=[0, 1, 2], world=3, knobs=knobs, dtype=["float32", dtype, dtype])
    result, _ = compare(side(rows), held, contract)
    assert result.reason == (
        f"training rank 1 computed in {said}, while training.compute_dtype was observed as float32"
    )
    unproven = {"training.compute_dtype": knob("float32", state=KnobState.INAPPLICABLE)}
    held = evolve(held, provenance=side(rows, knobs=unproven).provenance)
    assert compare(side(rows), held, contract)[0].status is not Status.INVALID_PROVENANCE


def test_positions_are_known_where_any_of_them_is(contract, side):
    blank = np.full(3, -1)
    sides = [changed(side([[-1.0]]), position_ids=blank) for _ in range(2)]
    assert compare(*sides, contract)[0].assumed == ("position_ids",)
    assert compare(side([[-1.0]]), side([[-1.0]]), contract)[0].assumed == ()
    half = [changed(side([[-1.0]]), position_ids=np.array([-1, -1, 2])) for _ in range(2)]
    assert compare(*half, contract)[0].assumed == ()
