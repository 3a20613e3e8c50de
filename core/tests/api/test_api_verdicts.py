"""What the values are is the status of the result: thresholds, what no comparison may contain, and one memory twice."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg import compare_logprobs
from xcfg.model.status import Status

ROLLOUT = -np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
TRAINING = ROLLOUT - np.float32(2.0**-3)
MASK = np.array([[1, 1, 0], [0, 1, 1]], bool)


def judge(rollout=ROLLOUT, training=TRAINING, **options):
    return compare_logprobs(rollout, training, **{"dtype": "bfloat16", **options})


def planted(value, at, base=ROLLOUT):
    values = base.copy()
    values[at] = value
    return values


def test_equality_with_the_threshold_passes_and_the_next_float_fails(contract):
    found = judge(contract=contract)
    assert (found.status, found.reason, found.threshold) == (Status.PASS, "", 0.125)
    beyond = planted(np.nextafter(np.float32(-2.125), np.float32(-3)), (0, 1), TRAINING)
    failed = judge(training=beyond, contract=contract, sequence_ids=["a", "b"])
    assert failed.status is Status.FAIL
    assert failed.reason == "max_abs_dlogp 0.125 exceeds the bfloat16 threshold 0.125 in sequence 'a' at position 1"
    assert failed.metrics["max_abs_dlogp"] == float(np.float32(2.1250002)) - 2.0


@pytest.mark.parametrize("spelled", ["bf16", "BFloat16", "torch.bfloat16"])
def test_spellings_of_a_dtype(contract, spelled):
    assert judge(dtype=spelled, contract=contract) == judge(contract=contract)


def test_the_dtype_chooses_the_row(contract):
    assert [judge(dtype=name, contract=contract).status for name in ("float32", "fp16", "bf16")] == [
        *(Status.FAIL, Status.FAIL, Status.PASS)
    ]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int4", ""])
def test_a_dtype_without_a_row_has_metrics_and_no_threshold(contract, dtype):
    found = judge(dtype=dtype, contract=contract)
    assert (found.status, found.threshold, found.dtype) == (Status.NO_THRESHOLD, None, dtype)
    assert found.metrics["max_abs_dlogp"] == 0.125
    assert "made-up" in found.reason


def test_a_contract_by_value_by_path_and_by_text_are_one(contract, contract_file):
    found = [judge(contract=given) for given in (contract, contract_file, str(contract_file))]
    assert found[0] == found[1] == found[2]
    assert found[0].contract.id == "made-up"
    assert found[0].clip_interval == (0.75, 1.25)


def test_the_shipped_contract_is_the_default():
    found = judge()
    assert (found.contract.id, found.status) == ("ws1", Status.FAIL)


@pytest.mark.parametrize("bounds", [(0.9, 1.1), [0.9, 1.1], np.array([0.9, 1.1])])
def test_a_clip_range_replaces_the_contract_s(contract, bounds):
    found = judge(contract=contract, clip_range=bounds)
    assert (found.clip_interval, found.metrics["clipfrac0"]) == ((0.9, 1.1), 1.0)  # exp(-0.125) is 0.88
    assert judge(contract=contract, clip_range=(0.0, float("inf"))).metrics["clipfrac0"] == 0.0


def test_what_arrays_do_not_tell_is_assumed(contract):
    stated = {"checkpoint", "weight_version", "prompt_ids", "response_ids", "position_ids"}
    stated |= {"temperature", "top_p", "top_k", "logprobs_mode"}
    assert set(judge(mask=MASK, contract=contract).assumed) == stated
    assert set(judge(contract=contract).assumed) == {*stated, "mask"}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 0.5])
@pytest.mark.parametrize("side", ["rollout", "training"])
def test_inactive_places_may_hold_anything(contract, side, bad):
    base = {"rollout": ROLLOUT, "training": TRAINING}
    dirty = {**base, side: planted(bad, (0, 2), base[side])}
    assert judge(**dirty, mask=MASK, contract=contract) == judge(**base, mask=MASK, contract=contract)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", ["rollout", "training"])
def test_an_active_value_that_is_not_finite_is_named(contract, side, bad):
    found = judge(**{side: planted(bad, (1, 1))}, mask=MASK, sequence_ids=["x", "ü"], contract=contract)
    assert (found.status, found.active_tokens) == (Status.NON_FINITE, 4)
    place = "in sequence 'ü' at position 1 on rank 0"
    assert found.reason == f"1 active logprobs are not finite, first {side} {bad} {place}"
    assert not found.metrics and found.worst is None


@pytest.mark.parametrize("side", ["rollout", "training"])
def test_a_probability_above_one_is_no_logprob(contract, side):
    found = judge(**{side: planted(0.002, (0, 1))}, contract=contract)
    assert found.status is Status.INVALID_ARTIFACT
    assert found.reason.startswith(f"1 active logprobs are above 0.001, first {side} 0.0020")
    assert found.reason.endswith("in sequence '0' at position 1 on rank 0")
    assert judge(**{side: planted(0.001, (0, 1))}, contract=contract).status is Status.FAIL


def test_ids_from_a_numpy_array_are_named_as_text(contract):
    found = judge(rollout=planted(np.nan, (1, 1)), sequence_ids=np.array(["x", "y"]), contract=contract)
    assert "in sequence 'y' at" in found.reason


def test_of_both_defects_the_graver_is_named_with_its_own_place(contract):
    rollout = planted(np.nan, (0, 0))
    rollout[1, 2] = 2.0
    found = judge(rollout=rollout, contract=contract)
    assert found.status is Status.INVALID_ARTIFACT
    assert found.reason == (
        "1 active logprobs are above 0.001, first rollout 2.0 in sequence '1' at position 2 on rank 0"
    )


def test_the_first_of_several_is_the_first_token_of_either_side(contract):
    found = judge(planted(np.nan, (1, 0)), planted(-np.inf, (0, 2)), contract=contract)
    assert found.reason == (
        "2 active logprobs are not finite, first training -inf in sequence '0' at position 2 on rank 0"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"rollout": np.zeros((0, 5)), "training": np.zeros((0, 5))},
        {"rollout": np.zeros((3, 0)), "training": np.zeros((3, 0)), "mask": np.zeros((3, 0))},
        {"rollout": [], "training": (), "mask": [], "token_ids": [], "sequence_ids": []},
        {"rollout": [[], []], "training": [[], []], "token_ids": [[], []], "sequence_ids": ["a", "b"]},
        {"rollout": np.zeros(0), "training": np.zeros(0), "lengths": [], "sequence_ids": []},
        {"rollout": np.zeros(0), "training": np.zeros(0), "lengths": [0, 0]},
        {"mask": np.zeros((2, 3), bool)},
    ],
)
def test_nothing_active_is_no_pass(contract, options):
    found = judge(**options, contract=contract)
    assert (found.status, found.active_tokens, dict(found.metrics)) == (Status.ZERO_ACTIVE_TOKENS, 0, {})


def test_an_empty_row_of_a_list_needs_no_dtype(contract):
    found = judge([[-1.0, -2.0], []], [[-1.0, -3.0], []], mask=[[True, 1], []], token_ids=[[7, 8], []], dtype="float32")
    assert (found.worst.sequence, found.worst.position, found.worst.token) == ("0", 1, 8)


def twice():
    """The same memory handed over as both sides, in ways that a copy on the way would hide."""
    half, wide = ROLLOUT.astype(np.float16), np.hstack([ROLLOUT, ROLLOUT])
    listed = ROLLOUT.tolist()
    return {
        "one array": (ROLLOUT, ROLLOUT),
        "two views": (ROLLOUT[:], ROLLOUT.view()),
        "strided": (wide[:, ::2], wide[:, ::2]),
        "transposed": (ROLLOUT.T, ROLLOUT.T),
        "float16": (half, half),
        "list of arrays": (list(ROLLOUT), list(ROLLOUT)),
        "one row of a list": ([ROLLOUT[0], ROLLOUT[1]], [ROLLOUT[0], TRAINING[1]]),
        "rows and their batch": (ROLLOUT, list(ROLLOUT)),
        "one row of a batch": (ROLLOUT, [TRAINING[0], ROLLOUT[1]]),
        "one list of numbers": (listed, listed),
        "shifted by one": (wide[:, :-1], wide[:, 1:]),
        "buffer": (memoryview(ROLLOUT), ROLLOUT),
    }


@pytest.mark.parametrize("name", list(twice()))
def test_one_memory_is_no_second_measurement(contract, name):
    found = judge(*twice()[name], contract=contract)
    assert found.status is Status.INVALID_ARTIFACT
    assert found.reason == "both sides are the same logprobs in memory, not two measurements, on rank 0"


def test_two_measurements_may_lie_in_one_allocation_and_agree_in_every_bit(contract):
    both = np.stack([ROLLOUT, ROLLOUT], axis=1)
    interleaved = np.repeat(ROLLOUT, 2, axis=1)
    for sides in ((both[:, 0], both[:, 1]), (interleaved[:, ::2], interleaved[:, 1::2]), (ROLLOUT, ROLLOUT.copy())):
        found = judge(*sides, contract=contract)
        assert (found.status, found.metrics["max_abs_dlogp"]) == (Status.PASS, 0.0)
    assert judge(list(both[:, 0]), list(both[:, 1]), contract=contract).status is Status.PASS


def test_one_empty_array_on_both_sides_is_nothing_rather_than_the_same(contract):
    empty = np.zeros(0, np.float32)
    assert judge(empty, empty, lengths=[0], contract=contract).status is Status.ZERO_ACTIVE_TOKENS


def test_a_drift_beyond_the_float_range_is_no_pass(contract):
    rollout = np.full((2, 3), -1.0)
    found = judge(rollout, planted(-1e300, (0, 0), rollout), contract=contract)
    assert found.status is Status.FAIL
    (finding,) = [item for item in found.findings if item.rule == "metric_overflow"]
    assert "rank" not in finding.evidence
    assert all(np.isfinite(value) for value in found.metrics.values())


def test_numbers_next_to_the_end_of_the_float_range_are_judged_in_silence(contract):
    """Sums of them are beyond it, whatever they are sums of: a missing value was filled with the lowest float64."""
    rollout = -np.arange(1.0, 41.0) / 7.0
    training = np.roll(rollout, 1)
    training[:20] = np.finfo(np.float64).min
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        found = judge(rollout, training, contract=contract)
    assert (found.status, found.metrics["max_abs_dlogp"]) == (Status.FAIL, np.finfo(np.float64).max)
    assert [item.rule for item in found.findings] == ["metric_overflow"]
    assert all(np.isfinite(value) for value in found.metrics.values())
