"""NeMo RL's mismatch metrics, of its clipped policy-gradient loss and of its check of each sequence.

The estimators are those of the default ``reference_policy_kl_type: k3``, which these metrics use without clamps, and
the importance ratio that of the defaults, a token at a time and not truncated. NeMo RL logs them under ``train/``;
its account of them is https://docs.nvidia.com/nemo/rl/latest/guides/grpo.html#metrics.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from xcfg.comparator.blocks import Block
from xcfg.comparator.names.metric import NamedMetric
from xcfg.comparator.names.running import Mean, Range, row_means

_REPOSITORY = "https://github.com/NVIDIA-NeMo/RL/blob"
LOSS = f"{_REPOSITORY}/006907a9570734f3e5d484c08ada84b0b89224c9/nemo_rl/algorithms/loss/loss_functions.py"
SEQUENCES = f"{_REPOSITORY}/002cdc27b8019eafc470f0aab22d4a7206d0de81/nemo_rl/algorithms/grpo.py"

METRICS = (
    NamedMetric(
        name="token_mult_prob_error",
        formula="mean_t exp(abs(d))",
        source=LOSS,
        ours="token_mult_prob_error",
    ),
    NamedMetric(name="gen_kl_error", formula="mean_t (exp(d) - 1 - d)", source=LOSS, ours="k3"),
    NamedMetric(name="policy_kl_error", formula="mean_t (exp(-d) - 1 + d)", source=LOSS, ours="k3_reverse"),
    NamedMetric(
        name="js_divergence_error",
        formula="mean_t (f(log(p / m)) + f(log(q / m))) / 2, f(x) = exp(x) - x - 1, m = (p + q) / 2",
        source=LOSS,
    ),
    NamedMetric(
        name="sampling_importance_ratio",
        formula="mean_t exp(d), 0 for a token where that overflows",
        source=LOSS,
        ours="ratio0_mean",
        differs="A ratio beyond the float range counts as 0, where ours leaves the metric out.",
    ),
    NamedMetric(
        name="max_seq_mult_prob_error",
        formula="max_s (mean_ts exp(abs(d)))",
        source=SEQUENCES,
        ours="sequence_mean_abs_max",
        differs="Of exp(abs(d)), where ours is of abs(d).",
    ),
    NamedMetric(name="mean_seq_mult_prob_error", formula="mean_s (mean_ts exp(abs(d)))", source=SEQUENCES),
    NamedMetric(name="min_seq_mult_prob_error", formula="min_s (mean_ts exp(abs(d)))", source=SEQUENCES),
)


class Mismatch:
    """The whole of NeMo RL's metrics; ratios and errors are kept less 1, where they gather."""

    def __init__(self) -> None:
        """Nothing seen."""
        self._ratio, self._error, self._row_error, self._row_errors = Mean(), Mean(), Mean(), Range()
        self._divergences: defaultdict[str, Mean] = defaultdict(Mean)

    def add(self, block: Block) -> None:
        """Take in one block."""
        d = block.d
        gain, loss = np.expm1(d), np.expm1(-d)
        error = np.maximum(gain, loss)
        rows = row_means(block, error)
        self._ratio.add(np.where(np.isinf(gain), -1.0, gain))
        self._error.add(error)
        self._row_error.add(rows)
        self._row_errors.add(rows)
        self._divergences["gen_kl_error"].add(gain - d)
        self._divergences["policy_kl_error"].add(loss + d)
        self._divergences["js_divergence_error"].add(jensen_shannon(block.absolute))

    def values(self) -> dict[str, float]:
        """Every metric of the group."""
        return {
            "token_mult_prob_error": 1.0 + self._error.value,
            "sampling_importance_ratio": 1.0 + self._ratio.value,
            "max_seq_mult_prob_error": 1.0 + self._row_errors.high,
            "mean_seq_mult_prob_error": 1.0 + self._row_error.value,
            "min_seq_mult_prob_error": 1.0 + self._row_errors.low,
            **{name: divergence.value for name, divergence in self._divergences.items()},
        }


def jensen_shannon(absolute: np.ndarray) -> np.ndarray:
    """(n,) NeMo RL's estimate a token from abs(d): half the k3 estimate of each side against their mixture m.

    The log ratio of the likelier side to m is log(2 / (1 + exp(-abs(d)))), that of the other lies abs(d) below it.
    Neither p nor q is formed, so that a probability below the float range does not make the estimate nan.
    """
    upper = -np.log1p(np.expm1(-absolute) / 2.0)
    lower = upper - absolute
    estimate: np.ndarray = ((np.expm1(upper) - upper) + (np.expm1(lower) - lower)) / 2.0
    return estimate
