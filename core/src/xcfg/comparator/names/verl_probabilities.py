"""verl's ``training/`` metrics: how far the probabilities of the sampled tokens lie apart."""

from __future__ import annotations

import numpy as np

from xcfg.comparator.blocks import Block
from xcfg.comparator.names.metric import NamedMetric
from xcfg.comparator.names.running import Correlation, Range, Spread

SOURCE = "https://github.com/verl-project/verl/blob/v0.9.1/verl/utils/debug/metrics.py#L63-L121"

METRICS = (
    NamedMetric(
        name="training/rollout_probs_diff_max",
        formula="max_t abs(p - q)",
        source=SOURCE,
        ours="max_abs_dlogp",
        differs="A difference of probabilities, where ours is of log probabilities.",
    ),
    NamedMetric(
        name="training/rollout_probs_diff_mean",
        formula="mean_t abs(p - q)",
        source=SOURCE,
        ours="mean_abs_dlogp",
        differs="A difference of probabilities, where ours is of log probabilities.",
    ),
    NamedMetric(
        name="training/rollout_probs_diff_std",
        formula="sqrt(sum_t (abs(p - q) - mean_t abs(p - q))^2 / (n - 1))",
        source=SOURCE,
        ours="std_dlogp",
        differs="Of abs(p - q) over n - 1 degrees of freedom, where ours is of d over n.",
    ),
    NamedMetric(
        name="training/rollout_actor_probs_pearson_corr",
        formula="Pearson correlation of p with q over tokens",
        source=SOURCE,
    ),
)


class Probabilities:
    """The ``training/`` group; standard deviation and correlation are undefined for a single token."""

    def __init__(self) -> None:
        """Nothing seen."""
        self._size, self._spread, self._both = Range(), Spread(), Correlation()

    def add(self, block: Block) -> None:
        """Take in one block."""
        p = np.exp(block.train.astype(np.float64))
        q = np.exp(block.rollout.astype(np.float64))
        apart = np.abs(p - q)
        self._size.add(apart)
        self._spread.add(apart)
        self._both.add(p, q)

    def values(self) -> dict[str, float]:
        """Every metric of the group."""
        return {
            "training/rollout_probs_diff_max": self._size.high,
            "training/rollout_probs_diff_mean": self._spread.mean,
            "training/rollout_probs_diff_std": self._spread.deviation(lost=1),
            "training/rollout_actor_probs_pearson_corr": self._both.value,
        }
