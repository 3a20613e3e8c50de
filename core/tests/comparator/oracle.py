"""Every metric in plain Python floats, written from the measurement contract's definitions."""

from __future__ import annotations

import math
import statistics
import struct


def percentile(values, q):
    """Linear interpolation between order statistics at q * (n - 1)."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def mean(values):
    return math.fsum(values) / len(values)


def correlation(x, y):
    """Pearson's coefficient; None where one of the two does not vary, or too little for the square of a float."""
    try:
        return statistics.correlation(x, y)
    except statistics.StatisticsError:
        return None


def oracle(rollout, training, masks, low, high):
    """Every metric from lists of rows, whose values are those that the side stores."""
    kept = [
        [(position, r, t) for position, (r, t, on) in enumerate(zip(*rows, strict=True)) if on]
        for rows in zip(rollout, training, masks, strict=True)
    ]
    kept = [row for row in kept if row]
    tokens = [token for row in kept for token in row]
    d = [t - r for _, r, t in tokens]
    size = [abs(value) for value in d]
    ratio = [math.exp(value) for value in d]
    sums = [abs(math.fsum(t - r for _, r, t in row)) for row in kept]
    means = [mean([abs(t - r) for _, r, t in row]) for row in kept]
    found = {
        "max_abs_dlogp": max(size),
        "mean_abs_dlogp": mean(size),
        "p95_abs_dlogp": percentile(size, 0.95),
        "p99_abs_dlogp": percentile(size, 0.99),
        "ratio0_min": min(ratio),
        "ratio0_mean": mean(ratio),
        "ratio0_max": max(ratio),
        "clipfrac0": mean([1.0 if value < low or value > high else 0.0 for value in ratio]),
        "approx_kl0": mean([math.expm1(value) - value for value in d]),
        "signed_mean_dlogp": mean(d),
        "std_dlogp": statistics.pstdev(d),
        "k1": -mean(d),
        "k1_reverse": mean(d),
        "k3": mean([math.expm1(value) - value for value in d]),
        "k3_reverse": mean([math.expm1(-value) + value for value in d]),
        "token_mult_prob_error": mean([math.exp(value) for value in size]),
        "chi2_token": mean([math.expm1(2 * value) for value in d]),
        "ess": math.fsum(ratio) ** 2 / (len(ratio) * math.fsum(value * value for value in ratio)),
        "frac_unequal": mean([float(struct.pack("d", t) != struct.pack("d", r)) for _, r, t in tokens]),
        "frac_gt_ln2": mean([float(value > math.log(2)) for value in size]),
        "sequence_max_abs_mean": mean([max(abs(t - r) for _, r, t in row) for row in kept]),
        "sequence_mean_abs_max": max(means),
        "sequence_sum_abs_max": max(sums),
        "sequence_sum_abs_mean": mean(sums),
        "corr_abs_position": correlation([float(position) for position, _, _ in tokens], size),
        "corr_abs_logp": correlation([r for _, r, _ in tokens], size),
        "corr_abs_length": correlation([float(len(row)) for row in kept for _ in row], size),
    }
    return {name: value for name, value in found.items() if value is not None}
