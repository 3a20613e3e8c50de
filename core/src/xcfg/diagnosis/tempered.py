"""One scalar temperature between both sides, fitted."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import LEAST_NATS, Found
from xcfg.diagnosis.likelihood import by_class, cost, gain, spread
from xcfg.diagnosis.lists import matched
from xcfg.diagnosis.view import View
from xcfg.model.json import Json

SLOPES = np.exp(np.linspace(np.log(0.2), np.log(5.0), 65))
OTHERS = np.array([1.0, 1.5, 2.5, 4.0, 8.0, 16.0, 48.0, 160.0])
"""Tokens that the rest of the mass is spread over, where nothing was recorded of them."""
FEWEST = 32
NORMALISERS = "log-sum-exp of both sides"
SIGNS = 0.08
"""Of the drifting tokens this part has the rarer sign: a temperature makes sure tokens likelier and rare ones not."""
A_TOKEN = 0.04
"""Nats a token that a fit without the distribution has to win over mere width: noise alone has no such trend."""


def temperature(view: View) -> Found | None:
    """Training logits are those of the rollout times a slope. Exact from log-sum-exps or lists, else within bounds."""
    if view.tokens < FEWEST:
        return None
    if view.observed.rollout.lse is not None and view.observed.training.lse is not None:
        return _by_normalisers(view) or _by_lists(view)
    return _by_lists(view) if matched(view) else _by_selected(view)


def _by_normalisers(view: View) -> Found | None:
    a, b = view.observed.rollout.lse, view.observed.training.lse
    if a is None or b is None:
        return None
    mine, theirs = view.x + a, view.y + b
    far = np.abs(mine) > np.quantile(np.abs(mine), 0.3)
    slope = float(np.median(theirs[far] / mine[far])) if far.any() and np.abs(mine).max() > 0 else 1.0
    if slope <= 0 or abs(slope - 1.0) < 1e-3:
        return None
    left = slope * mine - b
    return _found(view, slope, view.y - left, NORMALISERS, exact=True)


def _by_lists(view: View) -> Found | None:
    pairs = matched(view)
    if pairs is None:
        return None
    a, b, at = pairs.steps()
    far = a < -0.2
    if far.sum() < FEWEST:
        return None
    slope = float(np.median(b[far] / a[far]))
    noise = 1.5 * view.floor.scale[pairs.place][at] + 1e-9
    rest = (b - slope * a) / noise
    before = (b - a) / noise
    tight = spread(rest[far]) < max(0.05 * spread(before[far]), 3.0)
    uneven = abs(np.median(np.abs(b[far] / a[far] - slope))) > 0.2 * abs(slope - 1.0)
    if slope <= 0 or not tight or spread(before[far]) < 1.5 * spread(rest[far]) or uneven or abs(slope - 1.0) < 3e-3:
        return None
    top = view.observed.rollout.top
    assert top is not None
    known = np.where(top.token >= 0, top.logprob, -np.inf)
    return _best_rest(view, np.array([slope]), known, "lists of both sides", exact=True)


def _by_selected(view: View) -> Found | None:
    hot = view.d[view.hot]
    if len(hot) < FEWEST // 2 or min(np.mean(hot > 0), np.mean(hot < 0)) < SIGNS:
        return None
    top = view.observed.rollout.top
    known = None if top is None else np.where(top.token >= 0, top.logprob, -np.inf)
    return _best_rest(view, SLOPES, known, "selected logprobs", exact=False)


def predicted(x: np.ndarray, slope: float, others: float, known: np.ndarray | None) -> np.ndarray:
    """(N,) training logprobs at this slope; ``known`` (N, K) rollout logprobs, the rest spread over ``others``.

    y = slope x - log sum p^slope, the sum over the known tokens, else the selected one, and the rest.
    """
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        listed = x[:, None] if known is None else known
        mass = np.minimum(np.exp(listed).sum(axis=1), 1.0)
        total = np.exp(slope * listed).sum(axis=1)
        if known is not None:
            outside = x < np.where(np.isfinite(known), known, np.inf).min(axis=1) - 1e-6
            mass = np.minimum(mass + np.where(outside, np.exp(x), 0.0), 1.0)
            total = total + np.where(outside, np.exp(slope * x), 0.0)
        rest = np.maximum(1.0 - mass, 0.0)
        total = total + np.power(rest, slope) * others ** (1.0 - slope)
        left: np.ndarray = slope * x - np.log(np.maximum(total, 1e-300))
    return left


def _best_rest(view: View, slopes: np.ndarray, known: np.ndarray | None, source: str, *, exact: bool) -> Found | None:
    """The best number of other tokens for each slope, then the best slope, refined."""
    at = view.sample[:: max(1, len(view.sample) // 4000)]
    x, y, scale = view.x[at], view.y[at], view.floor.scale[at]
    listed = None if known is None else known[at]

    def lost(slope: float, others: float) -> float:
        rest = (y - predicted(x, slope, others, listed)) / scale
        return cost(rest, max(spread(rest), 1.0))

    tried = [(lost(float(s), float(k)), float(s), float(k)) for s in slopes for k in OTHERS]
    best = min(tried)
    if len(slopes) > 1:
        near = best[1] * np.exp(np.linspace(-0.025, 0.025, 11))
        best = min(
            [best, *((lost(float(s), k), float(s), k) for s in near for k in (best[2], best[2] * 1.4, best[2] / 1.4))]
        )
    _, fitted, others = best
    slope = _at_bound(view, fitted) if len(slopes) > 1 else fitted
    if slope != fitted:
        others = min((lost(slope, float(k)), float(k)) for k in OTHERS)[1]
    if abs(slope - 1.0) < 3e-3 or not 0.21 < slope < 4.9:
        return None
    left = view.y - predicted(view.x, slope, others, known)
    return _found(view, slope, left, source, exact=exact)


def _at_bound(view: View, fitted: float) -> float:
    """The slope that next to all unlikely tokens keep to, where it is further from 1 than the fit."""
    far = (view.x < -2.0) & (view.y < -0.5)
    if far.sum() < FEWEST:
        return fitted
    ratio = view.y[far] / view.x[far]
    if fitted > 1.0:
        return float(np.clip(np.quantile(ratio, 0.99), fitted, 1.3 * fitted))
    return float(np.clip(np.quantile(ratio, 0.01), fitted / 1.3, fitted))


def _found(view: View, slope: float, left: np.ndarray, source: str, *, exact: bool) -> Found | None:
    z = left / view.floor.scale
    rest = by_class(z, view.classes)
    nats = max(gain(view.z, z), view.plain - rest) - 12.0
    over = by_class(view.z, view.classes) - rest - 12.0
    if nats < LEAST_NATS or (not exact and over < max(LEAST_NATS, A_TOKEN * view.tokens)):
        return None
    share = view.explained(left)
    if share < (0.3 if exact else 0.25):
        return None
    evidence: dict[str, Json] = {
        "training_over_rollout_slope": slope,
        "temperature_if_training_is_raw": slope,
        "temperature_if_rollout_is_raw": 1.0 / slope,
        "fitted_from": source,
        "nats_over_width": over,
    }
    evidence |= _bounds(view, slope)
    return Found(
        kind="temperature",
        gain=nats,
        left=left,
        rough=source != NORMALISERS,
        evidence=evidence,
        confidence="high" if exact or share > 0.5 else "medium",
    )


def _bounds(view: View, slope: float) -> dict[str, Json]:
    """The share of tokens on the right side of y = slope x: sum p^slope is at least 1 below slope 1, else at most 1."""
    beyond = (view.y - slope * view.x) / view.floor.scale
    inside = np.mean(beyond < 3.0) if slope < 1.0 else np.mean(beyond > -3.0)
    return {"tokens_within_bound": float(inside)}
