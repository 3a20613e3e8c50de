"""Metrics at the edges of the float range and of their intervals, in any number of blocks, worked out by hand."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from xcfg.comparator import blocks
from xcfg.comparator.arrays import ArrayPairs
from xcfg.comparator.blocks import TokenPairs, cuts
from xcfg.comparator.drift import clip_in_nats, drift
from xcfg.comparator.exchange import ALONE
from xcfg.comparator.totals import LN2, Clip, Totals, reduced_sums
from xcfg.model.outcome import PairedTokens
from xcfg.model.result import METRIC_NAMES

INTERVAL = (0.75, 1.25)


def pairs(rollout, train, dtype=np.float64):
    """Rows as pairs in memory."""
    return ArrayPairs(
        rollout=np.array([value for row in rollout for value in row], dtype=dtype),
        train=np.array([value for row in train for value in row], dtype=dtype),
        lengths=np.array([len(row) for row in rollout], dtype=np.int64),
        mask=None,
        tokens=None,
        names=None,
        rank=0,
    )


def moved(d, interval=INTERVAL):
    """Drift of one row whose rollout logprobs are 0, so that the training ones are d exactly."""
    return drift(pairs([[0.0] * len(d)], [d]), interval)


@pytest.fixture(autouse=True)
def no_warnings():
    """Numbers beyond the range are told by name, never by a warning of numpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_ratio_of_zero_is_a_number_like_any_other():
    # r = exp(-899) = 0 in float64 and r = 1: the sums are 1, of squares 1
    found = moved([-899.0, 0.0])
    exact = {
        "ratio0_min": 0.0,
        "ratio0_mean": 0.5,
        "ratio0_max": 1.0,
        "approx_kl0": (0.0 - 1.0 + 899.0) / 2,
        "k3": 449.0,
        "chi2_token": -0.5,
        "ess": 0.5,
        "k1": 449.5,
        "k1_reverse": -449.5,
        "std_dlogp": 449.5,
        "clipfrac0": 0.5,
    }
    assert {name: found.metrics[name] for name in exact} == exact
    assert found.overflowed == ("k3_reverse", "token_mult_prob_error")


def test_what_overflows_is_named_in_reporting_order_and_the_rest_is_exact():
    found = moved([800.0, 800.0, 0.0, -1.0])
    assert found.overflowed == (
        "ratio0_mean",
        "ratio0_max",
        "approx_kl0",
        "k3",
        "token_mult_prob_error",
        "chi2_token",
    )
    # weights relative to the largest: 1, 1, exp(-800), exp(-801), of which the last two vanish
    assert found.metrics["ess"] == 0.5
    assert found.metrics["ratio0_min"] == math.exp(-1.0)
    assert found.metrics["signed_mean_dlogp"] == 399.75
    assert [name for name in METRIC_NAMES if name in found.metrics] == list(found.metrics)
    assert not set(found.overflowed) & set(found.metrics)


@pytest.mark.parametrize("swapped", [False, True])
def test_sums_beyond_the_float_range_are_named_and_leave_the_rest(swapped):
    """Every token is off by 1.7e308 nats, of which no two have a sum; the middle position is the mean one."""
    rows = [[0.0] * 3], [[-1.7e308] * 3]
    found = drift(pairs(*(rows[::-1] if swapped else rows)), INTERVAL)
    known = {"max_abs_dlogp": 1.7e308, "p99_abs_dlogp": 1.7e308, "sequence_max_abs_mean": 1.7e308, "ess": 1.0}
    assert {name: found.metrics[name] for name in known} == known
    assert {"mean_abs_dlogp", "k1", "std_dlogp", "sequence_sum_abs_max"} <= set(found.overflowed)
    assert all(math.isfinite(value) for value in found.metrics.values())


def test_the_effective_sample_size_beyond_the_range_of_squares():
    # r^2 overflows where r does not: exp(400), exp(399), exp(401)
    found = moved([400.0, 399.0, 401.0])
    weights = [math.exp(-1.0), math.exp(-2.0), 1.0]
    expected = math.fsum(weights) ** 2 / (3 * math.fsum(value * value for value in weights))
    assert found.metrics["ess"] == pytest.approx(expected, rel=1e-14)
    assert "chi2_token" in found.overflowed and "ratio0_mean" not in found.overflowed


@pytest.mark.parametrize("shift", [0.0, -5.0, -20.0, -40.0, -800.0])
def test_the_effective_sample_size_does_not_depend_on_a_common_factor(shift):
    d = [0.0, -1.0, -3.0]
    weights = [math.exp(value) for value in d]
    expected = math.fsum(weights) ** 2 / (3 * math.fsum(value * value for value in weights))
    assert moved([value + shift for value in d]).metrics["ess"] == pytest.approx(expected, rel=1e-13)


def test_the_effective_sample_size_of_equal_weights_is_one_and_never_more():
    for count in range(1, 60):
        found = moved([0.1 / count] * count)
        assert found.metrics["ess"] <= 1.0
        assert found.metrics["ess"] == pytest.approx(1.0, rel=1e-14)


def test_a_partial_sum_of_both_infinities_or_beyond_the_range_is_no_number():
    assert math.isnan(reduced_sums({"a": [math.inf, -math.inf]}, ALONE)["a"])
    assert math.isnan(reduced_sums({"a": [1e308, 1e308, -1e308]}, ALONE)["a"])
    assert reduced_sums({"a": [1e16, 1.0, -1e16], "b": []}, ALONE) == {"a": 1.0, "b": 0.0}
    assert reduced_sums({"a": [math.inf, 1.0]}, ALONE) == {"a": math.inf}


@pytest.mark.parametrize("interval", [(0.75, 1.25), (0.8, 1.28), (1.0, 1.0), (0.0, math.inf), (1e-3, 1e3)])
def test_the_bounds_of_the_clip_interval_are_inside_to_the_last_bit(interval):
    low, high = interval
    clip = clip_in_nats(interval)
    for d in (clip.low, clip.high, np.nextafter(clip.low, -np.inf), np.nextafter(clip.high, np.inf)):
        if math.isinf(d):
            continue
        outside = not low <= float(np.exp(d)) <= high
        assert moved([d], interval).metrics["clipfrac0"] == float(outside)
    if low > 0.0:
        assert float(np.exp(clip.low)) >= low > float(np.exp(np.nextafter(clip.low, -np.inf)))
    else:
        assert clip == Clip(low=-math.inf, high=math.inf)
    if high < math.inf:
        assert float(np.exp(clip.high)) <= high < float(np.exp(np.nextafter(clip.high, np.inf)))


def test_ln2_itself_is_not_beyond_ln2():
    found = moved([LN2, -LN2, float(np.nextafter(LN2, 1.0)), 0.0])
    assert float(np.log(np.float64(2.0))) == LN2
    assert found.metrics["frac_gt_ln2"] == 0.25


@pytest.mark.parametrize("count", range(2, 30))
def test_what_does_not_vary_has_no_correlation_whatever_rounding_leaves(count):
    rising = [0.1 * place for place in range(count)]
    still = [-0.1] * count
    found = drift(pairs([still], [[a + b for a, b in zip(still, rising, strict=True)]]), INTERVAL)
    assert "corr_abs_logp" not in found.metrics and "corr_abs_length" not in found.metrics
    assert found.metrics["corr_abs_position"] == pytest.approx(1.0, rel=1e-12)
    same = drift(pairs([[0.0] * count], [[0.1 * (-1) ** place for place in range(count)]]), INTERVAL)
    assert not [name for name in same.metrics if name.startswith("corr_")]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_correlation_never_leaves_its_range(sign):
    for seed in range(60):
        rollout = -np.sort(np.random.default_rng(seed).exponential(1.0, 13))
        found = drift(pairs([rollout], [rollout - (20.0 + sign * rollout)]), INTERVAL)
        assert -1.0 <= found.metrics["corr_abs_logp"] <= 1.0
        assert found.metrics["corr_abs_logp"] == pytest.approx(sign, rel=1e-9)


def test_too_little_variation_for_a_square_is_no_correlation():
    found = moved([1e-200, 2e-200])
    assert not [name for name in found.metrics if name.startswith("corr_")]
    tiny = drift(pairs([[-1e-200, -2e-200]], [[-1.0, -2.0]]), INTERVAL)
    assert "corr_abs_position" in tiny.metrics and "corr_abs_logp" not in tiny.metrics


@pytest.mark.parametrize("size", [1, 4, 7, 1 << 15])
def test_blocks_change_no_metric_and_a_tie_goes_to_the_first(monkeypatch, size):
    generator = np.random.default_rng(2)
    rollout = [-generator.exponential(2.5, length).astype(np.float32) for length in (3, 1, 6, 2, 5)]
    train = [row + np.float32(0.25) * generator.normal(size=len(row)).astype(np.float32) for row in rollout]
    rollout[1][0] = rollout[3][1] = -16.0
    train[1][0], train[3][1] = -25.0, -7.0
    whole = drift(pairs(rollout, train, np.float32), INTERVAL)
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    found = drift(pairs(rollout, train, np.float32), INTERVAL)
    assert (found.worst.row, found.worst.position, found.worst.rollout, found.worst.train) == (1, 0, -16.0, -25.0)
    assert found.worst == whole.worst
    for name, value in whole.metrics.items():
        assert found.metrics[name] == pytest.approx(value, rel=1e-12), name


def test_sums_are_of_float64_and_rounded_once_a_block():
    generator = np.random.default_rng(4)
    rollout = -generator.exponential(2.5, 5000).astype(np.float32)
    totals = Totals(Clip(low=-1.0, high=1.0))
    for block in pairs([rollout], [rollout - np.float32(0.1)], np.float32).blocks():
        totals.add(block)
    sums, most = totals.reduced(ALONE)
    exact = sum((Fraction(float(value)) for value in rollout), Fraction(0))
    assert sums["logp"] == pytest.approx(float(exact), rel=1e-14)
    assert sums["position"] == 5000 * 4999 / 2
    assert (sums["length"], most["length"], most["-length"]) == (5000.0**2, 5000.0, -5000.0)


def test_logprobs_of_two_widths_are_compared_as_float64():
    narrow = np.array([-0.1, -0.5, -1.0], dtype=np.float32)
    wide = narrow.astype(np.float64)
    wide[0] = -0.1
    held = ArrayPairs(rollout=narrow, train=wide, lengths=np.array([3]), mask=None, tokens=None, names=None, rank=0)
    found = drift(held, INTERVAL)
    assert found.metrics["frac_unequal"] == pytest.approx(1 / 3)
    assert found.metrics["max_abs_dlogp"] == abs(-0.1 - float(np.float32(-0.1)))
    zeros = moved([-0.0])
    assert (zeros.metrics["frac_unequal"], zeros.metrics["max_abs_dlogp"]) == (1.0, 0.0)  # 0.0 against -0.0


def test_no_token_at_all_is_refused():
    with pytest.raises(ValueError, match="drift needs at least one active token"):
        drift(pairs([], []), INTERVAL)


@pytest.mark.parametrize(
    ("lengths", "size", "expected"),
    [
        ([], 4, []),
        ([9], 4, [(0, 1)]),
        ([2, 2, 2, 2], 4, [(0, 2), (2, 4)]),
        ([3, 3, 3], 4, [(0, 1), (1, 2), (2, 3)]),
        ([9, 1, 2, 1, 9], 4, [(0, 1), (1, 4), (4, 5)]),
        ([0, 0, 4, 0, 1], 4, [(0, 4), (4, 5)]),
        ([1, 1, 1], 4, [(0, 3)]),
    ],
)
def test_rows_are_cut_into_blocks_that_hold_no_more_than_a_block_or_one_row(monkeypatch, lengths, size, expected):
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    assert [(found.start, found.stop) for found in cuts(np.array(lengths, dtype=np.int64))] == expected


def test_a_block_of_paired_tokens_is_a_view_of_whole_rows(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", 4)
    flat = np.arange(7)
    tokens = PairedTokens(
        sequence_ids=("a", "b", "c"),
        row_sequence=np.array([2, 0, 1]),
        row_length=np.array([3, 2, 2]),
        row_rollout_rank=np.zeros(3, int),
        row_train_rank=np.zeros(3, int),
        position=flat,
        token=flat + 50,
        rollout_logp=-flat.astype(np.float32),
        train_logp=-flat.astype(np.float32) - 1,
    )
    first, second = TokenPairs(tokens).blocks()
    assert (first.rows.tolist(), first.starts.tolist(), first.lengths.tolist()) == ([0], [0], [3])
    assert (second.rows.tolist(), second.starts.tolist(), second.lengths.tolist()) == ([1, 2], [0, 2], [2, 2])
    assert (first.position.tolist(), second.position.tolist()) == ([0, 1, 2], [3, 4, 5, 6])
    assert (second.rollout.tolist(), second.train.tolist()) == ([-3, -4, -5, -6], [-4, -5, -6, -7])
    found = TokenPairs(tokens).row(1)
    assert (found.sequence, found.position.tolist(), found.token.tolist()) == ("a", [3, 4], [53, 54])
    assert (found.rollout.tolist(), found.train.tolist()) == ([-3.0, -4.0], [-4.0, -5.0])


def test_squares_beyond_the_range_are_named_without_a_warning():
    found = moved([-1e200, 0.0])
    assert "std_dlogp" in found.overflowed
    assert (found.metrics["max_abs_dlogp"], found.metrics["ratio0_min"]) == (1e200, 0.0)
