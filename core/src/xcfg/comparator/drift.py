"""Drift of the active tokens, in float64.

``d = train_logp - rollout_logp`` (nats) a token, ``r = exp(d)`` the importance ratio of the token under the training
policy, n the number of active tokens. The tokens were drawn from the rollout policy.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from xcfg.model.outcome import PairedTokens
from xcfg.model.result import METRIC_NAMES, WorstToken

Values = dict[str, float]


@frozen(kw_only=True)
class Drift:
    """Finite metrics by name in the order of ``METRIC_NAMES``, and the names of those beyond the float range."""

    metrics: Values
    overflowed: tuple[str, ...]


def dlogp(tokens: PairedTokens) -> np.ndarray:
    """(A,) float64 ``train_logp - rollout_logp``; both sides are widened before the subtraction."""
    difference: np.ndarray = tokens.train_logp.astype(np.float64)
    difference -= tokens.rollout_logp
    return difference


def drift(tokens: PairedTokens, clip_interval: tuple[float, float]) -> Drift:
    """All metrics over at least one active, finite token. ``clip_interval`` bounds r, both bounds unclipped."""
    d = dlogp(tokens)
    absolute = np.abs(d)
    with np.errstate(over="ignore", invalid="ignore"):
        found = {
            **_absolute(d, absolute),
            **_ratio(d, clip_interval),
            **_sequences(tokens.sequence, d, absolute),
            **_correlations(tokens, absolute),
        }
    found["frac_unequal"] = float(np.mean(_bits(tokens.train_logp) != _bits(tokens.rollout_logp)))
    return Drift(
        metrics={name: found[name] for name in METRIC_NAMES if math.isfinite(found.get(name, math.nan))},
        overflowed=tuple(name for name in METRIC_NAMES if not math.isfinite(found.get(name, 0.0))),
    )


def worst_token(tokens: PairedTokens) -> WorstToken:
    """The largest abs(d); the first of equals, as tokens are in (sequence, position) order."""
    at = int(np.argmax(np.abs(dlogp(tokens))))
    return WorstToken(
        sequence=tokens.sequence_ids[int(tokens.sequence[at])],
        position=int(tokens.position[at]),
        token=int(tokens.token[at]),
        rollout_logp=float(tokens.rollout_logp[at]),
        train_logp=float(tokens.train_logp[at]),
        rollout_rank=int(tokens.rollout_rank[at]),
        train_rank=int(tokens.train_rank[at]),
    )


def _bits(logp: np.ndarray) -> np.ndarray:
    return logp.view(f"u{logp.dtype.itemsize}")


def _absolute(d: np.ndarray, absolute: np.ndarray) -> Values:
    """Size of d: max, mean and linearly interpolated percentiles of abs(d), mean and population deviation of d."""
    p95, p99 = np.percentile(absolute, (95.0, 99.0), method="linear")
    mean = float(np.mean(d))
    return {
        "max_abs_dlogp": float(np.max(absolute)),
        "mean_abs_dlogp": float(np.mean(absolute)),
        "p95_abs_dlogp": float(p95),
        "p99_abs_dlogp": float(p99),
        "signed_mean_dlogp": mean,
        "std_dlogp": math.sqrt(float(np.mean(np.square(d - mean)))),
        "frac_gt_ln2": float(np.mean(absolute > math.log(2.0))),
    }


def _ratio(d: np.ndarray, clip_interval: tuple[float, float]) -> Values:
    """Statistics of r and estimators of the divergence between the policies.

    - ``k1`` = mean(-d) and ``k3`` = mean(r - 1 - d) estimate KL(rollout || training), the ``_reverse`` forms (d
      negated) are the same estimators with the sides swapped: Schulman, "Approximating KL Divergence" (2020).
      ``approx_kl0`` is k3 by the measurement contract, through expm1 because r - 1 - d cancels for small d.
    - ``token_mult_prob_error`` = mean exp(abs(d)): NeMo RL's measure of the same name.
    - ``chi2_token`` = mean(r^2) - 1, the chi-square divergence, by r^2 - 1 = (r - 1)(r + 1).
    - ``ess`` = (sum r)^2 / (n sum r^2) in (0, 1]: Kong's effective sample size as a fraction, from exp(d - max d) so
      that it never overflows.
    """
    low, high = clip_interval
    k1 = -float(np.mean(d))
    ratio = np.exp(d)
    found = {
        "ratio0_min": float(np.min(ratio)),
        "ratio0_mean": float(np.mean(ratio)),
        "ratio0_max": float(np.max(ratio)),
        "clipfrac0": float(np.mean((ratio < low) | (ratio > high))),
        "k1": k1,
        "k1_reverse": -k1,
    }
    gain, loss = np.expm1(d), np.expm1(-d)
    found["k3"] = found["approx_kl0"] = float(np.mean(gain - d))
    found["k3_reverse"] = float(np.mean(loss + d))
    found["token_mult_prob_error"] = 1.0 + float(np.mean(np.maximum(gain, loss)))
    found["chi2_token"] = float(np.mean(gain * (gain + 2.0)))
    weight = np.exp(d - np.max(d))
    found["ess"] = float(np.sum(weight)) ** 2 / (len(d) * float(np.dot(weight, weight)))
    return found


def _sequences(sequence: np.ndarray, d: np.ndarray, absolute: np.ndarray) -> Values:
    """Per-sequence summaries: one bad sequence shows in a maximum of means, which a mean over tokens hides.

    ``sequence_sum_abs_*`` is abs(sum d), the log importance ratio of a whole sequence.
    """
    starts, lengths = segments(sequence)
    sums = np.abs(np.add.reduceat(d, starts))
    return {
        "sequence_max_abs_mean": float(np.mean(np.maximum.reduceat(absolute, starts))),
        "sequence_mean_abs_max": float(np.max(np.add.reduceat(absolute, starts) / lengths)),
        "sequence_sum_abs_max": float(np.max(sums)),
        "sequence_sum_abs_mean": float(np.mean(sums)),
    }


def _correlations(tokens: PairedTokens, absolute: np.ndarray) -> Values:
    """Pearson correlation of abs(d) a token with its position, with its rollout logp, with its sequence's length.

    Length counts active tokens. Absent where one of the two does not vary.
    """
    _, lengths = segments(tokens.sequence)
    pairs = {
        "corr_abs_position": tokens.position,
        "corr_abs_logp": tokens.rollout_logp,
        "corr_abs_length": np.repeat(lengths, lengths),
    }
    found = {name: pearson(values.astype(np.float64), absolute) for name, values in pairs.items()}
    return {name: value for name, value in found.items() if value is not None}


def segments(sequence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start and length of each run of equal values of a sorted, non-empty array."""
    starts = np.flatnonzero(np.concatenate([[True], sequence[1:] != sequence[:-1]]))
    return starts, np.diff(np.append(starts, len(sequence)))


def pearson(x: np.ndarray, y: np.ndarray) -> float | None:
    """Correlation coefficient of two float64 arrays in [-1, 1]; None where one of them is constant."""
    if np.min(x) == np.max(x) or np.min(y) == np.max(y):
        return None
    x, y = x - np.mean(x), y - np.mean(y)
    # values that came from float32 stay far inside the range of float64 when squared and summed
    value = float(np.dot(x, y)) / (math.sqrt(float(np.dot(x, x))) * math.sqrt(float(np.dot(y, y))))
    return min(1.0, max(-1.0, value))
