"""NeMo RL's names against its own padded computation, written again in numpy from the source named in the table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xcfg.comparator.names import named_metrics


def masked_mean(values, mask):
    count = np.float64(np.float32(mask.sum()) + np.float32(1e-8))  # a tensor of float32, as the batch's token count is
    return (values * mask).sum() / count


def k3(logprobs, reference):
    log_ratio = reference - logprobs
    return np.exp(log_ratio) - 1 - log_ratio


def mismatch_metrics(generation, previous, mask):
    error = np.abs(generation - previous)
    mixture = np.log(0.5 * np.exp(previous) + 0.5 * np.exp(generation))
    from_previous = np.exp(previous - mixture) - (previous - mixture) - 1
    from_generation = np.exp(generation - mixture) - (generation - mixture) - 1
    rows = (np.exp(error * mask) * mask).sum(axis=-1) / mask.sum(axis=-1)
    with np.errstate(over="ignore"):
        ratio = np.nan_to_num(np.exp(previous - generation), nan=0.0, posinf=0.0, neginf=0.0)
    return {
        "token_mult_prob_error": masked_mean(np.exp(error * mask), mask),
        "gen_kl_error": masked_mean(k3(generation, previous), mask),
        "policy_kl_error": masked_mean(k3(previous, generation), mask),
        "js_divergence_error": masked_mean(0.5 * from_previous + 0.5 * from_generation, mask),
        "sampling_importance_ratio": masked_mean(ratio, mask),
        "max_seq_mult_prob_error": rows.max(),
        "mean_seq_mult_prob_error": rows.mean(),
        "min_seq_mult_prob_error": rows.min(),
    }


@pytest.mark.parametrize("per_block", [1, 8, 37])
@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_every_metric_is_what_nemo_rl_computes_over_its_padded_batch(ragged, spread, per_block):
    pairs = ragged(4, spread=spread, per_block=per_block)
    assert named_metrics("nemo-rl", pairs) == pytest.approx(mismatch_metrics(*pairs.padded()), rel=1e-11)


def test_two_sequences_of_three_tokens(cut):
    """d = 0 and ln 2 in the first, -ln 4 in the second."""
    two = math.log(2.0)
    found = named_metrics("nemo-rl", cut([[-1.0, -1.0], [-1.0]], [[-1.0, -1.0 + two], [-1.0 - 2.0 * two]]))
    half = (4 / 3 - math.log(4 / 3) - 1 + 2 / 3 - math.log(2 / 3) - 1) / 2  # p = 2 q: m = 3 q / 2
    quarter = (8 / 5 - math.log(8 / 5) - 1 + 2 / 5 - math.log(2 / 5) - 1) / 2  # p = q / 4: m = 5 q / 8
    assert found == pytest.approx(
        {
            "token_mult_prob_error": (1.0 + 2.0 + 4.0) / 3.0,
            "gen_kl_error": (1.0 - two + 0.25 - 1.0 + 2.0 * two) / 3.0,
            "policy_kl_error": (0.5 - 1.0 + two + 3.0 - 2.0 * two) / 3.0,
            "js_divergence_error": (half + quarter) / 3.0,
            "sampling_importance_ratio": (1.0 + 2.0 + 0.25) / 3.0,
            "max_seq_mult_prob_error": 4.0,
            "mean_seq_mult_prob_error": 2.75,
            "min_seq_mult_prob_error": 1.5,
        },
        rel=1e-14,
    )


def test_equal_sides(cut):
    found = named_metrics("nemo-rl", cut([[-1.0, -3.0], [-7.0]], [[-1.0, -3.0], [-7.0]]))
    assert list(found.values()) == [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]


def test_a_ratio_that_overflows_counts_as_nothing(cut):
    """exp(1e4) is beyond float64; the other token's ratio is 2."""
    found = named_metrics("nemo-rl", cut([[-1e4, -1.0]], [[0.0, -1.0 + math.log(2.0)]]))
    assert found["sampling_importance_ratio"] == pytest.approx(1.0, rel=1e-15)
    assert "gen_kl_error" not in found and "max_seq_mult_prob_error" not in found
    assert found["policy_kl_error"] == pytest.approx((1e4 - 1.0 + 0.5 - 1.0 + math.log(2.0)) / 2.0, rel=1e-15)


def test_the_mixture_of_probabilities_below_the_float_range(cut):
    """p = exp(-2000) = 2 q: the estimate depends on d alone, though neither p nor q is a float64."""
    far = named_metrics("nemo-rl", cut([[-2000.0 - math.log(2.0)]], [[-2000.0]]))
    near = named_metrics("nemo-rl", cut([[-1.0 - math.log(2.0)]], [[-1.0]]))
    assert far["js_divergence_error"] == pytest.approx(near["js_divergence_error"], rel=1e-12)
