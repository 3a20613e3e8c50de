"""Drift of the active tokens, in float64, in two passes over the pairs.

``d = train_logp - rollout_logp`` (nats) a token, ``r = exp(d)`` the importance ratio of the token under the training
policy, n the number of active tokens. The tokens were drawn from the rollout policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from attrs import frozen

from xcfg.comparator.blocks import Pairs, Place
from xcfg.comparator.centred import COVARIATES, Moments, correlation
from xcfg.comparator.exchange import ALONE, Exchange
from xcfg.comparator.quantile import Selection, percentile, percentile_ranks
from xcfg.comparator.totals import Clip, Totals
from xcfg.model.result import METRIC_NAMES

Values = dict[str, float]
PERCENTS = (95.0, 99.0)


@frozen(kw_only=True)
class Drift:
    """Finite metrics by name in the order of ``METRIC_NAMES``, and the names of those beyond the float range.

    ``worst`` is the first token, in order of (sequence, position), of largest abs(d) among this process's own
    pairs; None where it has none.
    """

    tokens: int
    metrics: Values
    overflowed: tuple[str, ...]
    worst: Place | None


def drift(pairs: Pairs, clip_interval: tuple[float, float], exchange: Exchange = ALONE) -> Drift:
    """All metrics over at least one active, finite token. ``clip_interval`` bounds r, both bounds unclipped.

    ``exchange`` joins the pairs of several processes, of which some may have no token.
    """
    totals = Totals(clip_in_nats(clip_interval))
    for block in pairs.blocks():
        totals.add(block)
    sums, most = totals.reduced(exchange)
    n = int(sums["tokens"])
    if not n:
        raise ValueError("drift needs at least one active token")
    means = {name: sums[name] / n for name in ("d", "abs", *COVARIATES)}
    square = 1.0 + sums["square_gain"] / n  # mean r^2; far below one it has lost its digits
    moments = Moments(means, most["d"], weigh=not 0.5 <= square < math.inf)
    ranks = percentile_ranks(n, PERCENTS)
    chosen = Selection(totals.histogram, ranks, lambda: (block.absolute for block in pairs.blocks()), exchange)
    with np.errstate(over="ignore", invalid="ignore"):
        for block in pairs.blocks():
            moments.add(block)
            chosen.add(block.absolute)
    order = chosen.result()
    centred = moments.reduced(exchange)
    found = {
        **_absolute(n, sums, most, centred),
        **{f"p{percent:.0f}_abs_dlogp": percentile(n, percent, order) for percent in PERCENTS},
        **_ratio(n, sums, most),
        "ess": _effective(n, sums, centred),
        **_sequences(sums, most),
        **_correlations(most, centred),
    }
    return Drift(
        tokens=n,
        metrics={name: found[name] for name in METRIC_NAMES if math.isfinite(found.get(name, math.nan))},
        overflowed=tuple(name for name in METRIC_NAMES if not math.isfinite(found.get(name, 0.0))),
        worst=totals.worst,
    )


def clip_in_nats(interval: tuple[float, float]) -> Clip:
    """The d that ``exp`` maps into the ratio interval, bounds included, to the last bit."""
    low, high = interval
    return Clip(
        low=_first(lambda d: float(np.exp(d)) >= low, math.log(low)) if low > 0.0 else -math.inf,
        high=-_first(lambda d: float(np.exp(-d)) <= high, -math.log(high)) if high < math.inf else math.inf,
    )


def _first(holds: Callable[[float], bool], near: float) -> float:
    """The smallest float where a condition holds that is false below and true above some place close to ``near``."""
    low, high = near - 1e-9, near + 1e-9
    while low < (middle := low + (high - low) / 2.0) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _absolute(n: int, sums: Mapping[str, float], most: Mapping[str, float], moments: Mapping[str, float]) -> Values:
    """Size of d: ``max_abs_dlogp`` = max abs(d), ``mean_abs_dlogp`` = mean abs(d), mean and population deviation of d.

    ``frac_unequal`` counts tokens whose logprobs differ in a bit, ``frac_gt_ln2`` those with abs(d) > ln 2. The
    percentiles of abs(d) are interpolated linearly.
    """
    return {
        "max_abs_dlogp": most["abs"],
        "mean_abs_dlogp": sums["abs"] / n,
        "signed_mean_dlogp": sums["d"] / n,
        "std_dlogp": math.sqrt(moments["d d"] / n),
        "frac_unequal": sums["unequal"] / n,
        "frac_gt_ln2": sums["beyond_ln2"] / n,
    }


def _ratio(n: int, sums: Mapping[str, float], most: Mapping[str, float]) -> Values:
    """Statistics of r and estimators of the divergence between the policies.

    - ``ratio0_min``, ``ratio0_mean``, ``ratio0_max`` of r; ``clipfrac0`` = mean of 1[r < low or r > high].
    - ``k1`` = mean(-d) and ``k3`` = mean(r - 1 - d) estimate KL(rollout || training), the ``_reverse`` forms (d
      negated) are the same estimators with the sides swapped: Schulman, "Approximating KL Divergence" (2020).
      ``approx_kl0`` is k3 by the measurement contract, through expm1 because r - 1 - d cancels for small d.
    - ``token_mult_prob_error`` = mean exp(abs(d)): NeMo RL's measure of the same name.
    - ``chi2_token`` = mean(r^2) - 1, the chi-square divergence, by r^2 - 1 = (r - 1)(r + 1).
    """
    k1 = -sums["d"] / n
    return {
        "ratio0_min": _exp(-most["-d"]),
        "ratio0_mean": 1.0 + sums["gain"] / n,
        "ratio0_max": _exp(most["d"]),
        "clipfrac0": sums["clipped"] / n,
        "approx_kl0": sums["k3"] / n,
        "k1": k1,
        "k1_reverse": -k1,
        "k3": sums["k3"] / n,
        "k3_reverse": sums["k3_reverse"] / n,
        "token_mult_prob_error": 1.0 + sums["mult"] / n,
        "chi2_token": sums["square_gain"] / n,
    }


def _effective(n: int, sums: Mapping[str, float], moments: Mapping[str, float]) -> float:
    """``ess`` = (sum r)^2 / (n sum r^2) in (0, 1]: Kong's effective sample size as a fraction.

    From weights exp(d - max d) where the mean of r^2 overflows or is small: they do neither.
    """
    if "weight" in moments:
        return moments["weight"] ** 2 / (n * moments["weight weight"])
    return min(1.0, (1.0 + sums["gain"] / n) ** 2 / (1.0 + sums["square_gain"] / n))


def _sequences(sums: Mapping[str, float], most: Mapping[str, float]) -> Values:
    """Per-sequence summaries: one bad sequence shows in a maximum of means, which a mean over tokens hides.

    ``sequence_sum_abs_*`` is abs(sum d), the log importance ratio of a whole sequence.
    """
    return {
        "sequence_max_abs_mean": sums["row_max"] / sums["rows"],
        "sequence_mean_abs_max": most["row_mean"],
        "sequence_sum_abs_max": most["row_sum"],
        "sequence_sum_abs_mean": sums["row_sum"] / sums["rows"],
    }


def _correlations(most: Mapping[str, float], moments: Mapping[str, float]) -> Values:
    """Pearson correlation of abs(d) a token with its position, with its rollout logp, with its sequence's length.

    Length counts active tokens. Absent where one of the two does not vary, or too little for a float64 square.
    """
    if most["abs"] == -most["-abs"] or not moments["abs abs"]:
        return {}
    varying = [name for name in COVARIATES if most[name] != -most[f"-{name}"] and moments[f"{name} {name}"]]
    return {f"corr_abs_{name}": correlation(name, moments) for name in varying}


def _exp(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(value))
