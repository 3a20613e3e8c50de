"""TRL's ``sampling/`` metrics, which ``GRPOTrainer`` logs where vLLM samples and its ratio correction is on.

The importance ratio is that of the defaults: ``vllm_importance_sampling_mode: sequence_mask`` with
``vllm_importance_sampling_clip_max: 3.0`` and no lower bound. Other modes log other quantities under the same names.
TRL takes them on each process, averages the means of processes and then those of steps.
"""

from __future__ import annotations

import numpy as np

from xcfg.comparator.blocks import Block
from xcfg.comparator.names.metric import NamedMetric
from xcfg.comparator.names.running import Mean, Range, row_sums

_FILE = "https://github.com/huggingface/trl/blob/v1.16.0/trl/trainer/grpo_trainer.py"
DIFFERENCE, RATIO = f"{_FILE}#L2860-L2873", f"{_FILE}#L2660-L2706"
CLIP_MAX = 3.0

_MASKED = "The ratio of a whole sequence, 0 where it exceeds 3; ours is a token's own."

METRICS = (
    NamedMetric(
        name="sampling/sampling_logp_difference/mean",
        formula="mean_t abs(d)",
        source=DIFFERENCE,
        ours="mean_abs_dlogp",
    ),
    NamedMetric(
        name="sampling/sampling_logp_difference/max",
        formula="max_t abs(d)",
        source=DIFFERENCE,
        ours="max_abs_dlogp",
    ),
    NamedMetric(
        name="sampling/importance_sampling_ratio/min",
        formula="min_s R, R = exp(sum_ts d) where that is at most 3, else 0",
        source=RATIO,
        ours="ratio0_min",
        differs=_MASKED,
    ),
    NamedMetric(
        name="sampling/importance_sampling_ratio/mean",
        formula="mean_s R",
        source=RATIO,
        ours="ratio0_mean",
        differs=_MASKED,
    ),
    NamedMetric(
        name="sampling/importance_sampling_ratio/max",
        formula="max_s R",
        source=RATIO,
        ours="ratio0_max",
        differs=_MASKED,
    ),
)


class Sampling:
    """The ``sampling/`` group."""

    def __init__(self) -> None:
        """Nothing seen."""
        self._mean, self._largest = Mean(), Range()
        self._ratio, self._ratios = Mean(), Range()

    def add(self, block: Block) -> None:
        """Take in one block."""
        self._mean.add(block.absolute)
        self._largest.add(block.absolute)
        ratio = np.exp(row_sums(block, block.d))
        ratio[ratio > CLIP_MAX] = 0.0
        self._ratio.add(ratio)
        self._ratios.add(ratio)

    def values(self) -> dict[str, float]:
        """Every metric of the group."""
        return {
            "sampling/sampling_logp_difference/mean": self._mean.value,
            "sampling/sampling_logp_difference/max": self._largest.high,
            "sampling/importance_sampling_ratio/min": self._ratios.low,
            "sampling/importance_sampling_ratio/mean": self._ratio.value,
            "sampling/importance_sampling_ratio/max": self._ratios.high,
        }
