"""verl's ``rollout_corr/rollout_is_*``: the weights it would correct the loss with.

verl logs them only once ``rollout_is`` is set, which by default it is not. These are the values of ``rollout_is:
token`` with the default ``rollout_is_threshold: 2.0`` and no batch normalization; ``rollout_is: sequence`` logs other
quantities under the same names. With u = exp(clip(d, -20, 20)) the weight of a token is w = min(u, 2).
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial

import numpy as np

from xcfg.comparator.blocks import Block
from xcfg.comparator.names.metric import NamedMetric
from xcfg.comparator.names.running import Mean, Range, Spread, row_means
from xcfg.comparator.names.verl_divergence import SAFETY_BOUND

SOURCE = "https://github.com/verl-project/verl/blob/v0.9.1/verl/trainer/ppo/rollout_corr_helper.py#L522-L783"
UPPER, LOWER = 2.0, 0.5
"""``rollout_is_threshold``, where weights are truncated, and its reciprocal, below which they are only counted."""
FLOOR = 1e-8
"""What verl adds to the mean weight before it divides by it."""

_TRUNCATED = "d is clipped to 20 nats on either side and the ratio truncated at 2, where ours is neither."

_metric = partial(NamedMetric, source=SOURCE)

METRICS = (
    _metric(
        name="rollout_corr/rollout_is_mean",
        formula="mean_t w, w = min(u, 2), u = exp(clip(d, -20, 20))",
        ours="ratio0_mean",
        differs=_TRUNCATED,
    ),
    _metric(name="rollout_corr/rollout_is_max", formula="max_t w", ours="ratio0_max", differs=_TRUNCATED),
    _metric(name="rollout_corr/rollout_is_min", formula="min_t w", ours="ratio0_min", differs=_TRUNCATED),
    _metric(name="rollout_corr/rollout_is_std", formula="sqrt(mean_t w^2 - (mean_t w)^2)"),
    _metric(
        name="rollout_corr/rollout_is_eff_sample_size",
        formula="(mean_t w + 1e-8)^2 / mean_t w^2",
        ours="ess",
        differs="Of truncated weights, and with 1e-8 added to their mean: 1.00000002 in float64 where nothing drifts.",
    ),
    _metric(
        name="rollout_corr/rollout_is_ratio_fraction_high",
        formula="mean_t [u > 2]",
        ours="frac_gt_ln2",
        differs="Only ratios above 2, where ours also counts those below 1/2.",
    ),
    _metric(
        name="rollout_corr/rollout_is_ratio_fraction_low",
        formula="mean_t [u < 1/2]",
        ours="frac_gt_ln2",
        differs="Only ratios below 1/2, where ours also counts those above 2.",
    ),
    _metric(name="rollout_corr/rollout_is_seq_mean", formula="mean_s (mean_ts w)"),
    _metric(
        name="rollout_corr/rollout_is_seq_std",
        formula="standard deviation over sequences of mean_ts w, divided by their number - 1; 0 for one",
    ),
    _metric(name="rollout_corr/rollout_is_seq_max", formula="max_s (mean_ts w)"),
    _metric(name="rollout_corr/rollout_is_seq_min", formula="min_s (mean_ts w)"),
    _metric(name="rollout_corr/rollout_is_seq_max_deviation", formula="max_s abs(mean_ts w - 1)"),
    _metric(name="rollout_corr/rollout_is_seq_fraction_high", formula="mean_s [mean_ts u > 2]"),
    _metric(name="rollout_corr/rollout_is_seq_fraction_low", formula="mean_s [mean_ts u < 1/2]"),
)


class Weights:
    """The weights of tokens and of each sequence's mean, kept less 1, where they gather, and the range of clipped d."""

    def __init__(self) -> None:
        """Nothing seen."""
        self._clipped, self._token = Range(), Spread()
        self._row, self._rows = Spread(), Range()
        self._fractions: defaultdict[str, Mean] = defaultdict(Mean)

    def add(self, block: Block) -> None:
        """Take in one block."""
        clipped = np.clip(block.d, -SAFETY_BOUND, SAFETY_BOUND)
        raw = np.expm1(clipped)
        weight = np.minimum(raw, UPPER - 1.0)
        rows, raw_rows = row_means(block, weight), row_means(block, raw)
        self._clipped.add(clipped)
        self._token.add(weight)
        self._row.add(rows)
        self._rows.add(rows)
        for prefix, values in (("ratio", raw), ("seq", raw_rows)):
            self._fractions[f"{prefix}_fraction_high"].add(values > UPPER - 1.0)
            self._fractions[f"{prefix}_fraction_low"].add(values < LOWER - 1.0)

    def values(self) -> dict[str, float]:
        """Every metric of the group."""
        mean, deviation = 1.0 + self._token.mean, self._token.deviation(lost=0)
        found = {
            "mean": mean,
            "max": min(math.exp(self._clipped.high), UPPER),
            "min": min(math.exp(self._clipped.low), UPPER),
            "std": deviation,
            "eff_sample_size": (mean + FLOOR) ** 2 / (mean * mean + deviation * deviation),
            "seq_mean": 1.0 + self._row.mean,
            "seq_std": 0.0 if self._row.count == 1 else self._row.deviation(lost=1),
            "seq_max": 1.0 + self._rows.high,
            "seq_min": 1.0 + self._rows.low,
            "seq_max_deviation": max(self._rows.high, -self._rows.low),
            **{name: fraction.value for name, fraction in self._fractions.items()},
        }
        return {f"rollout_corr/rollout_is_{name}": value for name, value in found.items()}
