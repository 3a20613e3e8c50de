"""How well a pattern accounts for drift: log likelihoods under noise with Student's t of 3 degrees of freedom.

Everything is in nats against the hypothesis of plain noise. So an exact formula, a set of rows and a position from
which the drift starts compete on one scale, and each parameter is paid for by the logarithm of its choices.
Source: minimum description length, J. Rissanen, Automatica 14 (1978).
"""

from __future__ import annotations

import numpy as np

MEDIAN = 0.765
"""Median of abs(t) of unit scale, 3 degrees of freedom."""
FIRST_QUARTILE = 0.349
"""First quartile of the same."""
TINY = 0.02
"""Noise is at most this much smaller than the floor that a dtype leads one to expect."""


def cost(z: np.ndarray, scale: float = 1.0) -> float:
    """Minus the log likelihood of residuals ``z`` (n,), in units of the floor, up to a constant a token."""
    if not len(z):
        return 0.0
    return float(2.0 * np.log1p(np.square(z / scale) / 3.0).sum()) + len(z) * float(np.log(scale))


def spread(z: np.ndarray) -> float:
    """The scale of residuals, by their median."""
    return float(np.median(np.abs(z))) / MEDIAN if len(z) else 0.0


def plain(z: np.ndarray) -> float:
    """The cost of residuals that are noise at the floor or below it."""
    below = min(max(spread(z), TINY), 1.0)
    return min(cost(z), cost(z, below))


def gain(z: np.ndarray, left: np.ndarray) -> float:
    """Nats that a formula wins: it leaves ``left`` of ``z``, of whatever scale."""
    return plain(z) - min(cost(left), cost(left, max(spread(left), TINY)))


def by_class(z: np.ndarray, place: np.ndarray) -> float:
    """The cost of residuals of another width in each class; ``place`` (n,) numbers the classes."""
    parts = [z[place == number] for number in range(int(place.max(initial=-1)) + 1)]
    return sum(cost(part, max(spread(part), TINY)) + 2.0 for part in parts if len(part))


def widened(z: np.ndarray) -> float:
    """Nats that it wins to call these residuals wider than the floor, and nothing else."""
    return plain(z) - cost(z, max(spread(z), 1.0))
