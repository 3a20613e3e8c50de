"""Metrics against an oracle in plain Python floats, written from the measurement contract's definitions."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from xcfg.comparator.compare import compare
from xcfg.model.result import METRIC_NAMES
from xcfg.model.status import Status

from .oracle import oracle

EXAMPLES = settings.default.max_examples


def f32(value):
    """The nearest float32, by the struct module."""
    return struct.unpack("f", struct.pack("f", value))[0]


logp = st.floats(min_value=-40, max_value=0, width=32)
token = st.tuples(logp, st.floats(min_value=-3, max_value=3), st.booleans())
batches = st.lists(st.lists(token, min_size=1, max_size=7), min_size=1, max_size=6)


def split(batch):
    rollout = [[r for r, _, _ in row] for row in batch]
    training = [[f32(min(0.0, r + shift)) for r, shift, _ in row] for row in batch]
    masks = [[on for _, _, on in row] for row in batch]
    return rollout, training, masks


@settings(max_examples=3 * EXAMPLES // 2, deadline=None)
@given(batches)
def test_every_metric_equals_the_oracle(contract, side, batch):
    rollout, training, masks = split(batch)
    result, tokens = compare(side(rollout, masks=masks), side(training, masks=masks), contract)
    if not any(on for row in masks for on in row):
        assert result.status is Status.ZERO_ACTIVE_TOKENS
        return
    expected = oracle(rollout, training, masks, *contract.clip_interval)
    assert result.status in (Status.PASS, Status.FAIL)
    assert result.active_tokens == sum(on for row in masks for on in row) == len(tokens.token)
    for name, value in expected.items():
        if name.startswith("corr_") and name not in result.metrics:
            continue
        assert result.metrics[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    assert [name for name in METRIC_NAMES if name in result.metrics] == list(result.metrics)


@settings(max_examples=3 * EXAMPLES // 5, deadline=None)
@given(batches, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(contract, side, permute, batch, random):
    rollout, training, masks = split(batch)
    left, right = side(rollout, masks=masks), side(training, masks=masks)
    order = list(range(len(rollout)))
    random.shuffle(order)
    first, _ = compare(left, right, contract)
    second, _ = compare(permute(left, order), right, contract)
    third, _ = compare(left, permute(right, order), contract)
    assert first == second == third


@pytest.mark.parametrize(
    ("d", "p95", "p99"),
    [([0.25], 0.25, 0.25), ([0.0, 1.0], 0.95, 0.99), ([0.0, 1.0, 3.0], 2.8, 2.96)],
)
def test_percentiles_interpolate_linearly(contract, side, d, p95, p99):
    result, _ = compare(side([[-8.0] * len(d)]), side([[-8.0 + value for value in d]]), contract)
    assert result.metrics["p95_abs_dlogp"] == pytest.approx(p95, rel=1e-12)
    assert result.metrics["p99_abs_dlogp"] == pytest.approx(p99, rel=1e-12)


def test_approx_kl_is_right_where_the_naive_float32_form_is_not(contract, side):
    result, _ = compare(side([[-1.0]]), side([[-1.0 + 2.0**-14]]), contract)
    d = 2.0**-14
    series = d**2 / 2 + d**3 / 6 + d**4 / 24  # the next term is below 1e-23
    assert result.metrics["approx_kl0"] == pytest.approx(series, rel=1e-6)
    naive = np.exp(np.float32(d)) - np.float32(1) - np.float32(d)
    assert abs(float(naive) - series) > series / 2


def test_identical_sides_are_bitwise_zero(contract, side):
    rows = [[-0.1, -7.3], [-2.2, -0.4, -1.1]]
    result, _ = compare(side(rows), side(rows), contract)
    assert result.status is Status.PASS
    zero = {name for name, value in result.metrics.items() if value == 0.0}
    assert {"max_abs_dlogp", "approx_kl0", "k1", "std_dlogp", "frac_unequal", "chi2_token"} <= zero
    assert result.metrics["ratio0_mean"] == result.metrics["ess"] == 1.0
    assert not [name for name in result.metrics if name.startswith("corr_")]


def test_one_bad_sequence_shows_in_the_maximum_of_means(contract, side):
    rollout = [[-1.0] * 4 for _ in range(100)]
    training = [list(row) for row in rollout]
    training[57] = [-1.5] * 4
    result, _ = compare(side(rollout), side(training), contract)
    assert result.metrics["mean_abs_dlogp"] == pytest.approx(0.005)
    assert result.metrics["sequence_mean_abs_max"] == 0.5
    assert result.metrics["sequence_sum_abs_max"] == 2.0
    assert result.status is Status.FAIL


def test_the_clip_interval_is_open_and_can_be_replaced(contract, side):
    ratios = [0.75, 1.0, 1.3, 0.7]
    training = [[-2.0 + math.log(value) for value in ratios]]
    result, _ = compare(side([[-2.0] * 4]), side(training), contract)
    assert result.clip_interval == (0.75, 1.25)
    wide, _ = compare(side([[-2.0] * 4]), side(training), contract, clip_range=(0.5, 2.0))
    assert (wide.metrics["clipfrac0"], wide.clip_interval) == (0.0, (0.5, 2.0))
    narrow, _ = compare(side([[-2.0] * 4]), side([[-2.0] * 4]), contract, clip_range=(1.0, 1.0))
    assert narrow.metrics["clipfrac0"] == 0.0
    inside, _ = compare(side([[-2.0] * 2]), side([[-2.0 + math.log(1.3), -2.0 + math.log(0.7)]]), contract)
    assert inside.metrics["clipfrac0"] == 1.0


def test_a_metric_beyond_the_float_range_is_left_out_and_never_passes(contract, side):
    wide = evolve(contract, max_abs_dlogp={"float32": 1e6})
    result, _ = compare(side([[-900.0, -1.0]]), side([[-0.5, -1.0]]), wide)
    assert result.status is Status.NON_FINITE
    assert "ratio0_max" in result.reason
    assert "ratio0_max" not in result.metrics
    assert result.metrics["max_abs_dlogp"] == 899.5
    assert all(math.isfinite(value) for value in result.metrics.values())
    assert [item.rule for item in result.findings] == ["metric_overflow"]
    fails, _ = compare(side([[-900.0, -1.0]]), side([[-0.5, -1.0]]), contract, baseline_dtype="bfloat16")
    assert fails.status is Status.FAIL
    assert fails.within_baseline_row is False
    mixed = evolve(contract, max_abs_dlogp={"float32": 2.0**-10, "bfloat16": 1e6})
    assert compare(side([[-900.0]]), side([[-0.5]]), mixed, baseline_dtype="bfloat16")[0].within_baseline_row is False
