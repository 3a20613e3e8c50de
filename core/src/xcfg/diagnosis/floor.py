"""The noise floor: what two engines of a dtype differ by when nothing is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from xcfg.diagnosis.likelihood import FIRST_QUARTILE
from xcfg.diagnosis.observed import Observed
from xcfg.model.dtypes import normal_dtype
from xcfg.model.json import Json

TYPICAL: Mapping[str, float] = {"float32": 4e-6, "float16": 1e-3, "bfloat16": 1e-2}
"""Usual scale of d between two engines of a dtype, nats at a token of probability near 1 in e."""
ROOM = 3.0
"""The floor is at most this many times the usual scale ..."""
LEAST = 0.1
"""... and at least this part of it: engines that agree better make no fault of the usual noise."""
GROWTH = 0.25
"""Noise grows with a token's uncertainty: by this factor for each nat of abs(logp), up to ``FURTHEST``."""
FURTHEST = 8.0
UNSURE = 0.2
"""abs(logp) of a token that shows noise: one that is certain is certain on both sides."""
BINS = 12
BIN_TOKENS = 64
SAMPLE = 200_000
"""Tokens that a quantile is estimated from, evenly spaced."""
_ORDER = ("float32", "float16", "bfloat16")


@frozen(kw_only=True, eq=False)
class Floor:
    """``scale`` (N,) float64 nats: the scale of noise at each token. ``dtype`` is the one that bounds it."""

    dtype: str
    scale: np.ndarray
    typical: float
    measured: float
    bounded: bool

    def evidence(self) -> dict[str, Json]:
        """The floor as plain JSON, nats."""
        return {
            "dtype": self.dtype,
            "floor": float(np.median(self.scale)) if len(self.scale) else 0.0,
            "first_quartile_scale": self.measured,
            "usual_of_dtype": self.typical,
            "bounded_by_dtype": self.bounded,
        }


def _unsure(relative: np.ndarray, uncertain: np.ndarray) -> np.ndarray:
    """A sample of the tokens that show noise; of all where hardly any is unsure."""
    step = max(1, len(relative) // SAMPLE)
    values, keys = relative[::step], uncertain[::step]
    unsure: np.ndarray = values[keys >= UNSURE]
    return unsure if len(unsure) >= max(16, 0.1 * len(values)) else values


def stated_dtype(observed: Observed) -> str:
    """The lower of the two compute dtypes; empty where neither side states one that has a floor."""
    stated = [normal_dtype(side.stated.dtype) for side in (observed.rollout, observed.training)]
    known = [name for name in stated if name in _ORDER]
    if any(name and name not in _ORDER for name in stated):
        return "bfloat16"
    return max(known, key=_ORDER.index, default="")


def noise_floor(observed: Observed, *, bounded: bool = True) -> Floor:
    """The floor of these tokens: from the first quartile of abs(d) by abs(logp), within the bounds of the dtype.

    A first quartile stands while fewer than three tokens in four drift; where more do, the dtype's bound holds it.
    Where no side states a dtype, the narrowest one that the data allow counts. Not ``bounded`` is the floor of what a
    rough fit left: as wide as it is.
    """
    dtype = stated_dtype(observed)
    size = np.abs(observed.d)
    uncertain = uncertainty(observed)
    slope = 1.0 + GROWTH * np.minimum(uncertain, FURTHEST)
    relative = size / slope
    whole = _first_quartile(_unsure(relative, uncertain)) if len(size) else 0.0
    likely = dtype or next((name for name in _ORDER if whole <= ROOM * TYPICAL[name]), _ORDER[-1])
    typical = TYPICAL[likely] if dtype else min(max(TYPICAL[likely], whole), TYPICAL[_ORDER[-1]])
    if not bounded:
        typical = max(typical, whole)
    most = ROOM * typical if bounded else np.inf
    level = np.clip(_measured(relative, uncertain, bounded=bounded), LEAST * typical, most)
    return Floor(
        dtype=dtype or f"{likely}, by the data",
        scale=level * slope,
        typical=typical,
        measured=whole,
        bounded=bool(whole > ROOM * typical),
    )


def uncertainty(observed: Observed) -> np.ndarray:
    """(N,) abs(logp) of the surer side: a drifting token stays with those it would be like without the drift."""
    surer: np.ndarray = np.minimum(np.abs(observed.rollout.logprob), np.abs(observed.training.logprob))
    return surer


def _measured(relative: np.ndarray, uncertain: np.ndarray, *, bounded: bool) -> np.ndarray:
    """(N,) the scale at each token, from its bin; no bin of surer tokens is above those of less sure ones' least."""
    step = max(1, len(relative) // SAMPLE)
    values, keys = relative[::step], uncertain[::step]
    bins = int(np.clip(len(values) // BIN_TOKENS, 1, BINS))
    edges = np.unique(np.quantile(keys, np.linspace(0.0, 1.0, bins + 1)[1:-1])) if bins > 1 else np.zeros(0)
    place = np.searchsorted(edges, keys, side="right")
    scales = np.array([_first_quartile(values[place == b]) for b in range(len(edges) + 1)])
    known = scales[np.isfinite(scales)]
    scales = np.where(np.isfinite(scales), scales, known.max() if len(known) else 0.0)
    centres = np.array([np.median(keys[place == b]) if (place == b).any() else 0.0 for b in range(len(edges) + 1)])
    settled = np.flatnonzero(centres >= 0.3)
    if bounded and len(settled):  # noise saturates with uncertainty; drift that goes on growing is not noise
        limit = 2.0 * scales[settled[: max(1, (len(settled) + 1) // 2)]].min()
        scales[settled] = np.minimum(scales[settled], limit)
    found: np.ndarray = scales[np.searchsorted(edges, uncertain, side="right")]
    return found


def _first_quartile(values: np.ndarray) -> float:
    if not len(values):
        return float("nan")
    low, half = np.quantile(values, [0.25, 0.5])
    return float(low if low > 0 else 0.25 * half) / FIRST_QUARTILE
