"""Threshold, judging dtype, worst token, statuses and the worse of two comparisons."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from attrs import evolve

from xcfg.comparator.compare import compare
from xcfg.comparator.verdict import failed, worse
from xcfg.model.codec import dump_json
from xcfg.model.status import INVALID_PRECEDENCE, Status, severity

LIMIT = 2.0**-10


def one_ulp_above(value):
    return float(np.nextafter(np.float32(value), np.float32(1)))


@pytest.mark.parametrize(
    ("d", "status"),
    [(LIMIT, Status.PASS), (-LIMIT, Status.PASS), (one_ulp_above(LIMIT), Status.FAIL), (0.0, Status.PASS)],
)
def test_equality_with_the_threshold_passes_and_one_ulp_more_fails(contract, side, d, status):
    rollout = -0.0 if d < 0 else -d  # so that train - rollout is exactly d in float32 inputs
    result, _ = compare(side([[rollout, -1.0]]), side([[rollout + d, -1.0]]), contract)
    assert result.metrics["max_abs_dlogp"] == abs(d)
    assert (result.status, result.threshold, result.dtype) == (status, LIMIT, "float32")


@pytest.mark.parametrize(
    ("rollout", "training", "judged"),
    [
        ("float32", "float32", "float32"),
        ("float32", "bfloat16", "bfloat16"),
        ("bfloat16", "float32", "bfloat16"),
        ("float16", "bfloat16", "bfloat16"),
        ("float32", "float16", "float16"),
    ],
)
def test_the_lower_precision_judges(contract, side, rollout, training, judged):
    result, _ = compare(side([[-1.0]], dtype=rollout), side([[-1.1]], dtype=training), contract)
    assert (result.dtype, result.threshold) == (judged, contract.max_abs_dlogp[judged])
    assert dict(result.limits).items() >= {"max_abs_dlogp": contract.max_abs_dlogp[judged]}.items()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", ""])
def test_a_dtype_without_a_row_has_no_threshold_but_keeps_its_numbers(contract, side, dtype):
    result, tokens = compare(
        side([[-1.0]], dtype=dtype), side([[-1.1]], dtype="bfloat16"), contract, baseline_dtype="bfloat16"
    )
    assert (result.status, result.threshold, result.dtype) == (Status.NO_THRESHOLD, None, dtype)
    assert result.metrics["max_abs_dlogp"] == pytest.approx(0.1, rel=1e-6)
    assert result.within_baseline_row is True
    assert len(tokens.sequence) == 1


def test_ranks_that_disagree_about_their_dtype_are_found_and_the_lowest_judges(contract, side):
    mixed = side([[-1.0], [-2.0]], dtype=["float32", "bfloat16"], world=2, ranks=[0, 1])
    result, _ = compare(mixed, side([[-1.0], [-2.0]]), contract)
    assert result.dtype == "bfloat16"
    (finding,) = result.findings
    assert (finding.rule, finding.evidence["judged_as"]) == ("compute_dtype_by_rank", "bfloat16")
    assert dict(finding.evidence["compute_dtype"]) == {"0": "float32", "1": "bfloat16"}


def test_the_baseline_row_is_judged_beside_the_own_row(contract, side):
    d = 2.0**-5
    left, right = side([[-1.0]]), side([[-1.0 + d]])
    result, _ = compare(left, right, contract, baseline_dtype="bfloat16")
    assert (result.status, result.within_baseline_row, result.baseline_dtype) == (Status.FAIL, True, "bfloat16")
    assert compare(left, right, contract, baseline_dtype="float32")[0].within_baseline_row is False
    assert compare(left, right, contract, baseline_dtype="float8_e5m2")[0].within_baseline_row is None
    assert compare(left, right, contract)[0].within_baseline_row is None


def test_kl_and_clip_rows_never_change_the_verdict(contract, side):
    tight = evolve(contract, approx_kl0={"float32": 0.0}, clipfrac0={"float32": 0.0}, max_abs_dlogp={"float32": 5.0})
    result, _ = compare(side([[-3.0]]), side([[-1.0]]), tight)
    assert result.status is Status.PASS
    assert result.metrics["clipfrac0"] == 1.0
    assert dict(result.limits) == {"max_abs_dlogp": 5.0, "approx_kl0": 0.0, "clipfrac0": 0.0}


def test_the_worst_token_is_named_with_its_place_ids_and_ranks(contract, side):
    left = side([[-1.0, -2.0, -3.0], [-1.0, -2.0, -3.0]], ids=["a", "b"], world=2, ranks=[1, 0], dtype="bfloat16")
    right = side([[-1.0, -2.0, -3.0], [-1.0, -2.5, -3.0]], ids=["a", "b"], world=3, ranks=[0, 2])
    result, _ = compare(left, right, contract)
    worst = result.worst
    assert (worst.sequence, worst.position, worst.token) == ("b", 1, 11)
    assert (worst.rollout_logp, worst.train_logp, worst.rollout_rank, worst.train_rank) == (-2.0, -2.5, 0, 2)


def test_ties_go_to_the_lowest_sequence_by_utf8_bytes_then_position(contract, side):
    # UTF-8 bytes: "B" 42, "a" 61, "é" c3.., "\uffff" ef.., "\U0001f600" f0..; UTF-16 order would swap the last two
    ids = ["\U0001f600", "\uffff", "é", "a", "B"]
    rollout, training = [[-1.0, -1.0, -1.0]] * 5, [[-1.0, -1.5, -0.5]] * 5
    result, tokens = compare(side(rollout, ids=ids), side(training, ids=ids), contract)
    assert (result.worst.sequence, result.worst.position) == ("B", 1)
    assert tokens.sequence_ids == ("B", "a", "é", "\uffff", "\U0001f600")
    changed = [list(row) for row in training]
    changed[4] = changed[3] = changed[2] = [-1.0] * 3
    result, _ = compare(side(rollout, ids=ids), side(changed, ids=ids), contract)
    assert result.worst.sequence == "\uffff"


def test_ids_in_another_order_on_one_side_still_pair(contract, side):
    left = side([[-1.0], [-2.0]], ids=["x", "y"], prompts=[2, 3])
    right = side([[-2.0], [-1.0]], ids=["y", "x"], prompts=[3, 2])
    result, _ = compare(left, right, contract)
    assert (result.status, result.metrics["max_abs_dlogp"]) == (Status.PASS, 0.0)


def test_inactive_tokens_take_no_part_whatever_they_hold(contract, side):
    masks = [[True, False, True]]
    left = side([[-1.0, math.nan, -2.0]], masks=masks)
    right = side([[-1.0, 5.0, -2.0]], masks=masks)
    result, _ = compare(left, right, contract)
    assert (result.status, result.active_tokens, result.metrics["max_abs_dlogp"]) == (Status.PASS, 2, 0.0)


def test_a_failed_side_gives_its_status_and_no_numbers(contract):
    result = failed(Status.TIMEOUT, "no answer in 5 s", contract)
    assert (result.status, result.reason, result.contract) == (Status.TIMEOUT, "no answer in 5 s", contract.ref)
    assert not result.metrics
    with pytest.raises(ValueError, match="pass"):
        failed(Status.PASS, "", contract)


def test_worse_follows_the_precedence_of_exit_codes_then_the_larger_drift(contract, side):
    passing, _ = compare(side([[-1.0]]), side([[-1.0]]), contract)
    failing, _ = compare(side([[-1.0]]), side([[-2.0]]), contract)
    further, _ = compare(side([[-1.0]]), side([[-3.0]]), contract)
    invalid, _ = compare(side([[-1.0]]), side([[math.nan]]), contract)
    broken = failed(Status.SCORER_ERROR, "died", contract)
    ladder = [passing, failing, further, invalid, broken]
    for low, a in enumerate(ladder):
        for high, b in enumerate(ladder):
            assert worse(a, b) is ladder[max(low, high)]


def test_severity_orders_every_status_with_pass_lowest():
    ordered = sorted(Status, key=severity)
    assert ordered[:2] == [Status.PASS, Status.FAIL]
    assert sorted(INVALID_PRECEDENCE, key=severity, reverse=True) == list(INVALID_PRECEDENCE)


def test_a_comparison_is_strict_json(contract, side):
    left = side([[-900.0, -1.0], [-2.0, -3.0]], world=2, ranks=[0, 1])
    result, _ = compare(left, side([[-0.5, -1.0], [-2.0, -3.0]]), contract)
    document = json.loads(dump_json(result))
    assert document["status"] == "fail"
    assert document["per_rank"][0]["rollout"]["parallel"] == {"fsdp": 2}
