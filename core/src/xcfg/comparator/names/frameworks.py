"""The frameworks whose names we know, and their metrics over the pairs of a comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from xcfg.comparator.blocks import Pairs
from xcfg.comparator.names import nemo_rl, trl, verl_divergence, verl_probabilities, verl_weights
from xcfg.comparator.names.metric import Group, NamedMetric

FRAMEWORKS: Mapping[str, tuple[NamedMetric, ...]] = MappingProxyType(
    {
        "verl": (*verl_probabilities.METRICS, *verl_divergence.METRICS, *verl_weights.METRICS),
        "trl": trl.METRICS,
        "nemo-rl": nemo_rl.METRICS,
    }
)
"""Every metric we compute under a framework's name, in reporting order.

Left out is what needs data that recorded logprobs do not hold:

- verl: ``actor/*`` and ``critic/*`` (advantages, rewards, the policy after an update), ``rollout_corr/rollout_rs_*``
  and ``rollout_is_oob_ratio``, ``rollout_is_batch_norm_factor`` (settings that verl leaves off), and the flag
  ``training/rollout_probs_diff_valid``, which is 1 wherever there is a token.
- TRL: ``kl`` (reference policy), ``clip_ratio/*`` and ``cispo_clip_ratio`` (advantages), ``entropy``, ``policy_loss``.
- NeMo RL: ``probs_ratio*`` and ``approx_entropy`` (the policy after an update), ``kl_penalty`` (reference policy),
  ``is_oob_ratio`` and ``*_after_mask`` (settings that NeMo RL leaves off).
"""

_GROUPS: Mapping[str, tuple[Callable[[], Group], ...]] = {
    "verl": (verl_probabilities.Probabilities, verl_divergence.Divergence, verl_weights.Weights),
    "trl": (trl.Sampling,),
    "nemo-rl": (nemo_rl.Mismatch,),
}


def named_metrics(framework: str, pairs: Pairs) -> dict[str, float]:
    """The finite metrics of a framework (a key of ``FRAMEWORKS``) over pairs of at least one token, read once.

    A row of the pairs is one sequence of the framework's batch, and all rows are one batch on one process. The
    frameworks compute the formulas in the dtype of the logprobs, mostly float32, where exp(x) overflows beyond 88.72
    instead of 709.78; here they are computed in float64. Where verl and NeMo RL divide by a count, they add 1e-8 to it,
    which no count of at least 1 feels in float32, and which is left out here.
    """
    groups = [make() for make in _GROUPS[framework]]
    seen = False
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for block in pairs.blocks():
            seen = True
            for group in groups:
                group.add(block)
    if not seen:
        raise ValueError("a framework's metrics need at least one active token")
    found = {name: value for group in groups for name, value in group.values().items()}
    return {metric.name: found[metric.name] for metric in FRAMEWORKS[framework] if math.isfinite(found[metric.name])}
