"""TRL's names against ``GRPOTrainer``'s own padded computation, written again in numpy from its source."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xcfg.comparator.names import named_metrics


def grpo_metrics(rollout, train, mask, clip_max=3.0):
    difference = (train - rollout) * mask
    ratio = np.exp(difference.sum(axis=-1, keepdims=True))
    ratio = np.where((ratio < -math.inf) | (ratio > clip_max), 0.0, ratio).flatten()
    apart = np.abs(train - rollout)[mask.astype(bool)]
    return {
        "sampling/sampling_logp_difference/mean": apart.mean(),
        "sampling/sampling_logp_difference/max": apart.max(),
        "sampling/importance_sampling_ratio/min": ratio.min(),
        "sampling/importance_sampling_ratio/mean": ratio.mean(),
        "sampling/importance_sampling_ratio/max": ratio.max(),
    }


@pytest.mark.parametrize("per_block", [1, 6, 37])
@pytest.mark.parametrize("spread", [0.01, 0.5])
def test_every_metric_is_what_trl_computes_over_its_padded_batch(ragged, spread, per_block):
    pairs = ragged(3, spread=spread, per_block=per_block)
    assert named_metrics("trl", pairs) == pytest.approx(grpo_metrics(*pairs.padded()), rel=1e-12)


def test_a_sequence_is_the_product_of_its_ratios_and_0_above_three(cut):
    """Ratios 1/2 * 3 = 3/2, 4 (masked) and 1/4: three tokens and a fourth in three sequences."""
    d = [[math.log(0.5), math.log(3.0)], [math.log(4.0)], [math.log(0.25)]]
    pairs = cut([[0.0] * len(row) for row in d], d, per_block=2)
    expected = {
        "sampling/sampling_logp_difference/mean": (math.log(2.0) + math.log(3.0) + 2.0 * math.log(4.0)) / 4.0,
        "sampling/sampling_logp_difference/max": math.log(4.0),
        "sampling/importance_sampling_ratio/min": 0.0,
        "sampling/importance_sampling_ratio/mean": 1.75 / 3.0,
        "sampling/importance_sampling_ratio/max": 1.5,
    }
    assert named_metrics("trl", pairs) == pytest.approx(expected, rel=1e-15)


def test_one_token(cut):
    found = named_metrics("trl", cut([[-2.0]], [[-1.5]]))
    assert list(found.values()) == pytest.approx([0.5, 0.5, *3 * [math.exp(0.5)]], rel=1e-15)
