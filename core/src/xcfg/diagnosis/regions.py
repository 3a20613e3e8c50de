"""Regions: sets of tokens that drift while the others do not, paid for by what it takes to name the set."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from xcfg.diagnosis.floor import FURTHEST, GROWTH, ROOM
from xcfg.diagnosis.found import LEAST_NATS, Found
from xcfg.diagnosis.view import View
from xcfg.model.json import Json

ABOVE = 1.5
"""A region's drift is beyond the most that its dtype is allowed, by this factor at its upper quartile."""
CONTRAST = 2.5
SHOWS = 0.3
"""Of a region's unsure tokens at least this part drifts."""
FEWEST = 3


def choice(many: int, few: int) -> float:
    """Nats to say which ``few`` of ``many``, by Stirling's formula."""
    if few <= 0 or few > many:
        return 0.0
    return few * (math.log(many / few) + 1.0)


def region(
    view: View,
    kind: str,
    inside: np.ndarray,
    price: float,
    evidence: Mapping[str, Json],
    *,
    confidence: str = "high",
    alone: bool = False,
) -> Found | None:
    """``inside`` (N,) as a candidate of ``kind``; None where it wins too little or drifts like the rest.

    ``alone`` allows a region that holds all tokens.
    """
    count = int(inside.sum())
    if count < FEWEST or (count == view.tokens and not alone):
        return None
    nats = float(view.score[inside].sum()) - price
    hot = float(view.hot[inside].mean())
    rest = float(view.hot[~inside].mean()) if count < view.tokens else 0.0
    if nats < LEAST_NATS or hot < CONTRAST * rest or np.count_nonzero(view.hot[inside]) < FEWEST:
        return None
    above = beyond(view, inside)
    telling = inside & (view.shows >= 0.5 * view.shows.max())
    if above < ABOVE or np.mean(view.hot[telling]) < SHOWS:
        return None
    facts = {
        "tokens": count,
        "share_of_tokens": count / view.tokens,
        "drifting_inside": hot,
        "drifting_outside": rest,
        "mean_abs_d_inside": float(view.size[inside].mean()),
        "mean_abs_d_outside": float(view.size[~inside].mean()) if count < view.tokens else None,
        "upper_quartile_over_bound_of_dtype": above,
    }
    return Found(kind=kind, gain=nats, inside=inside, evidence={**evidence, **facts}, confidence=confidence)


def beyond(view: View, inside: np.ndarray) -> float:
    """The upper quartile of abs(d) over the largest scale the dtype is allowed, at tokens unsure enough to show it."""
    slope = 1.0 + GROWTH * np.minimum(view.uncertain, FURTHEST)
    telling = inside & (view.shows >= 0.5 * view.shows.max())
    if not telling.any():
        return 0.0
    return float(np.quantile(view.size[telling] / slope[telling], 0.75)) / (ROOM * view.floor.typical)
