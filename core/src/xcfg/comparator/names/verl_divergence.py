"""verl's ``rollout_corr/`` divergences and perplexities, which it logs whether or not it corrects for the drift."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

import numpy as np

from xcfg.comparator.blocks import Block
from xcfg.comparator.names.metric import NamedMetric
from xcfg.comparator.names.running import Mean, Range, row_means, row_sums

SOURCE = "https://github.com/verl-project/verl/blob/v0.9.1/verl/trainer/ppo/rollout_corr_helper.py#L904-L1010"
SAFETY_BOUND = 20.0
"""Nats beyond which verl cuts a log ratio before it takes the exponential."""

_metric = partial(NamedMetric, source=SOURCE)

METRICS = (
    _metric(name="rollout_corr/training_ppl", formula="mean_s exp(-mean_ts train_logp)"),
    _metric(name="rollout_corr/training_log_ppl", formula="mean_s (-mean_ts train_logp)"),
    _metric(name="rollout_corr/kl", formula="mean_t (-d)", ours="k1"),
    _metric(name="rollout_corr/k3_kl", formula="mean_t (exp(d) - d - 1)", ours="k3"),
    _metric(name="rollout_corr/rollout_ppl", formula="mean_s exp(-mean_ts rollout_logp)"),
    _metric(name="rollout_corr/rollout_log_ppl", formula="mean_s (-mean_ts rollout_logp)"),
    _metric(
        name="rollout_corr/log_ppl_diff",
        formula="mean_s (-mean_ts d)",
        ours="k1",
        differs="A short sequence weighs as much as a long one, where ours is a mean over tokens.",
    ),
    _metric(
        name="rollout_corr/log_ppl_abs_diff",
        formula="mean_s abs(mean_ts d)",
        ours="sequence_sum_abs_mean",
        differs="Of the mean d of a sequence, where ours is of its sum.",
    ),
    _metric(name="rollout_corr/log_ppl_diff_max", formula="max_s (-mean_ts d)"),
    _metric(name="rollout_corr/log_ppl_diff_min", formula="min_s (-mean_ts d)"),
    _metric(name="rollout_corr/ppl_ratio", formula="mean_s exp(-mean_ts d)"),
    _metric(
        name="rollout_corr/chi2_token",
        formula="mean_t exp(2 clip(d, -20, 20)) - 1",
        ours="chi2_token",
        differs="d is clipped to 20 nats on either side, where ours is not.",
    ),
    _metric(name="rollout_corr/chi2_seq", formula="mean_s exp(2 clip(sum_ts d, -20, 20)) - 1"),
)


class Divergence:
    """The divergences and perplexities, under verl's names without the prefix."""

    def __init__(self) -> None:
        """Nothing seen."""
        self._means: defaultdict[str, Mean] = defaultdict(Mean)
        self._gaps = Range()

    def add(self, block: Block) -> None:
        """Take in one block."""
        d, sums = block.d, row_sums(block, block.d)
        gap = -sums / block.lengths
        self._gaps.add(gap)
        for name, values in (
            ("kl", -d),
            ("k3_kl", np.expm1(d) - d),
            ("log_ppl_diff", gap),
            ("log_ppl_abs_diff", np.abs(gap)),
            ("ppl_ratio", np.exp(gap)),
            ("chi2_token", _squared_less_one(d)),
            ("chi2_seq", _squared_less_one(sums)),
        ):
            self._means[name].add(values)
        for side, logp in (("training", block.train), ("rollout", block.rollout)):
            surprise = -row_means(block, logp)
            self._means[f"{side}_ppl"].add(np.exp(surprise))
            self._means[f"{side}_log_ppl"].add(surprise)

    def values(self) -> dict[str, float]:
        """Every metric of the group."""
        found = {name: mean.value for name, mean in self._means.items()}
        found |= {"log_ppl_diff_max": self._gaps.high, "log_ppl_diff_min": self._gaps.low}
        return {f"rollout_corr/{name}": value for name, value in found.items()}


def _squared_less_one(log_ratio: np.ndarray) -> np.ndarray:
    """exp(2 clip(log_ratio, -20, 20)) - 1, which is -1 in float64 from -20 nats down, clipped or not."""
    less: np.ndarray = np.expm1(2.0 * np.minimum(log_ratio, SAFETY_BOUND))
    return less
