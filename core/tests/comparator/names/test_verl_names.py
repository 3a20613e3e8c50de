"""verl's names against verl's own padded computation, written again in numpy from the source named in the table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xcfg.comparator.names import named_metrics


def masked_sum(values, mask, axis=None):
    return (np.where(mask.astype(bool), values, 0.0) * mask).sum(axis=axis)


def masked_mean(values, mask, axis=None):
    count = mask.sum(axis=axis).astype(np.float32) + np.float32(1e-8)  # an integer mask sums to float32 in torch
    return masked_sum(values, mask, axis) / count.astype(np.float64)


def debug_metrics(rollout, train, mask):
    chosen = mask.astype(bool)
    p, q = np.exp(train)[chosen], np.exp(rollout)[chosen]
    apart = np.abs(p - q)
    return {
        "training/rollout_probs_diff_max": apart.max(),
        "training/rollout_probs_diff_mean": apart.mean(),
        "training/rollout_probs_diff_std": apart.std(ddof=1),
        "training/rollout_actor_probs_pearson_corr": np.corrcoef(np.stack([p, q]))[0][1],
    }


def offpolicy_metrics(rollout, train, mask):
    mean_train, mean_rollout = masked_mean(train, mask, -1), masked_mean(rollout, mask, -1)
    log_ratio = train - rollout
    gap = mean_rollout - mean_train
    token = np.exp(np.clip(log_ratio, -20.0, 20.0)) ** 2
    sequence = np.exp(2.0 * np.clip(masked_sum(log_ratio, mask, -1), -20.0, 20.0))
    return {
        "training_ppl": np.exp(-mean_train).mean(),
        "training_log_ppl": (-mean_train).mean(),
        "kl": masked_mean(rollout - train, mask),
        "k3_kl": masked_mean(np.exp(log_ratio) - log_ratio - 1, mask),
        "rollout_ppl": np.exp(-mean_rollout).mean(),
        "rollout_log_ppl": (-mean_rollout).mean(),
        "log_ppl_diff": gap.mean(),
        "log_ppl_abs_diff": np.abs(gap).mean(),
        "log_ppl_diff_max": gap.max(),
        "log_ppl_diff_min": gap.min(),
        "ppl_ratio": np.exp(gap).mean(),
        "chi2_token": masked_mean(token, mask) - 1.0,
        "chi2_seq": sequence.mean() - 1.0,
    }


def weight_metrics(rollout, train, mask, upper=2.0):
    raw = np.exp(np.clip(train - rollout, -20.0, 20.0)) * mask
    weight = np.minimum(raw, upper)
    lower, chosen = 1.0 / upper, mask.astype(bool)
    mean = masked_mean(weight, mask)
    variance = masked_mean(np.clip(weight, 0.0, upper) ** 2, mask) - mean**2
    rows, raw_rows = masked_mean(weight, mask, -1), masked_mean(raw, mask, -1)
    return {
        "rollout_is_mean": mean,
        "rollout_is_ratio_fraction_high": masked_mean((raw > upper).astype(float), mask),
        "rollout_is_ratio_fraction_low": masked_mean((raw < lower).astype(float), mask),
        "rollout_is_max": weight[chosen].max(),
        "rollout_is_min": weight[chosen].min(),
        "rollout_is_std": math.sqrt(max(variance, 0.0)) if mask.sum() > 1 else 0.0,
        "rollout_is_eff_sample_size": 1.0 / masked_mean((weight / (mean + 1e-8)) ** 2, mask),
        "rollout_is_seq_mean": rows.mean(),
        "rollout_is_seq_std": rows.std(ddof=1) if len(rows) > 1 else 0.0,
        "rollout_is_seq_max": rows.max(),
        "rollout_is_seq_min": rows.min(),
        "rollout_is_seq_max_deviation": np.abs(rows - 1.0).max(),
        "rollout_is_seq_fraction_high": (raw_rows > upper).mean(),
        "rollout_is_seq_fraction_low": (raw_rows < lower).mean(),
    }


def everything(pairs):
    arrays = pairs.padded()
    correction = offpolicy_metrics(*arrays) | weight_metrics(*arrays)
    return debug_metrics(*arrays) | {f"rollout_corr/{name}": value for name, value in correction.items()}


@pytest.mark.parametrize("per_block", [1, 4, 37])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_metric_is_what_verl_computes_over_its_padded_batch(ragged, seed, per_block):
    pairs = ragged(seed, per_block=per_block)
    assert named_metrics("verl", pairs) == pytest.approx(everything(pairs), rel=1e-11, abs=1e-14)


def test_float32_logprobs_are_widened_before_anything_is_computed(ragged):
    pairs = ragged(2, spread=0.01, dtype=np.float32)
    assert named_metrics("verl", pairs) == pytest.approx(everything(pairs), rel=1e-9, abs=1e-14)


def test_one_token(cut):
    """d = ln 2 from q = 1/4 to p = 1/2; a spread or a correlation of one token does not exist, but verl's own
    ``std`` of weights is 0 by definition."""
    found = named_metrics("verl", cut([[math.log(0.25)]], [[math.log(0.5)]]))
    assert "training/rollout_probs_diff_std" not in found
    assert "training/rollout_actor_probs_pearson_corr" not in found
    expected = {
        "training/rollout_probs_diff_max": 0.25,
        "training/rollout_probs_diff_mean": 0.25,
        "rollout_corr/training_ppl": 2.0,
        "rollout_corr/training_log_ppl": math.log(2.0),
        "rollout_corr/rollout_ppl": 4.0,
        "rollout_corr/kl": -math.log(2.0),
        "rollout_corr/k3_kl": 1.0 - math.log(2.0),
        "rollout_corr/log_ppl_diff": -math.log(2.0),
        "rollout_corr/log_ppl_abs_diff": math.log(2.0),
        "rollout_corr/ppl_ratio": 0.5,
        "rollout_corr/chi2_token": 3.0,
        "rollout_corr/chi2_seq": 3.0,
        "rollout_corr/rollout_is_mean": 2.0,
        "rollout_corr/rollout_is_std": 0.0,
        "rollout_corr/rollout_is_ratio_fraction_high": 0.0,
        "rollout_corr/rollout_is_seq_std": 0.0,
        "rollout_corr/rollout_is_seq_max_deviation": 1.0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-14)


def test_three_tokens_of_two_sequences(cut):
    """d = 0 and ln 4 in the first sequence (w 1 and 2, truncated), -ln 4 in the second (w 1/4)."""
    four = math.log(4.0)
    found = named_metrics("verl", cut([[-1.0, -2.0], [-1.0]], [[-1.0, -2.0 + four], [-1.0 - four]]))
    expected = {
        "rollout_corr/kl": 0.0,
        "rollout_corr/log_ppl_diff": four / 4.0,
        "rollout_corr/log_ppl_diff_max": four,
        "rollout_corr/log_ppl_diff_min": -four / 2.0,
        "rollout_corr/ppl_ratio": (0.5 + 4.0) / 2.0,
        "rollout_corr/chi2_token": (1.0 + 16.0 + 1.0 / 16.0) / 3.0 - 1.0,
        "rollout_corr/chi2_seq": (16.0 + 1.0 / 16.0) / 2.0 - 1.0,
        "rollout_corr/rollout_is_mean": 3.25 / 3.0,
        "rollout_corr/rollout_is_max": 2.0,
        "rollout_corr/rollout_is_min": 0.25,
        "rollout_corr/rollout_is_ratio_fraction_high": 1.0 / 3.0,
        "rollout_corr/rollout_is_ratio_fraction_low": 1.0 / 3.0,
        "rollout_corr/rollout_is_eff_sample_size": (3.25 / 3.0) ** 2 / ((1.0 + 4.0 + 1.0 / 16.0) / 3.0),
        "rollout_corr/rollout_is_seq_mean": 0.875,
        "rollout_corr/rollout_is_seq_std": math.sqrt(2.0) * 0.625,
        "rollout_corr/rollout_is_seq_fraction_high": 0.5,
        "rollout_corr/rollout_is_seq_fraction_low": 0.5,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=3e-8, abs=1e-15)


def test_the_log_ratio_is_cut_at_twenty_nats(cut):
    found = named_metrics("verl", cut([[-1.0], [-50.0]], [[-31.0], [-1.0]]))
    assert found["rollout_corr/chi2_token"] == pytest.approx((math.exp(-40) + math.exp(40)) / 2 - 1, rel=1e-14)
    assert found["rollout_corr/rollout_is_min"] == pytest.approx(math.exp(-20.0), rel=1e-15)
    assert found["rollout_corr/k3_kl"] == pytest.approx((30 + math.exp(-30) - 1 + math.exp(49) - 50) / 2, rel=1e-14)


def test_a_ratio_of_exactly_one_half_is_not_below_it(cut):
    assert math.expm1(-math.log(2.0)) == -0.5
    found = named_metrics("verl", cut([[0.0], [0.0]], [[-math.log(2.0)], [-math.log(2.5)]]))
    assert found["rollout_corr/rollout_is_ratio_fraction_low"] == 0.5
    assert found["rollout_corr/rollout_is_seq_fraction_low"] == 0.5


def test_probabilities_that_do_not_vary_have_no_correlation(cut):
    found = named_metrics("verl", cut([[-0.5, -0.5], [-0.5]], [[-1.0, -2.0], [-3.0]], per_block=2))
    assert "training/rollout_actor_probs_pearson_corr" not in found
    assert found["training/rollout_probs_diff_max"] == pytest.approx(math.exp(-0.5) - math.exp(-3.0), rel=1e-15)
