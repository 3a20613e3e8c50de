"""A monotone transform of the logits: the order of a place's tokens is kept, their distances are not."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import LEAST_NATS, Found
from xcfg.diagnosis.likelihood import gain, spread
from xcfg.diagnosis.lists import Matched, matched
from xcfg.diagnosis.view import View

CAPS = np.exp(np.linspace(np.log(2.0), np.log(200.0), 40))
FEWEST = 32
FLIPPED = 0.05
BENT = 2.0
"""The straight line leaves this many times what the curve leaves."""


def monotone(view: View) -> Found | None:
    """Softcap or another curve between both sides' logits, from log-sum-exps, else from the order of the lists."""
    if view.tokens < FEWEST:
        return None
    return _by_normalisers(view) or _by_lists(view)


def _by_normalisers(view: View) -> Found | None:
    a, b = view.observed.rollout.lse, view.observed.training.lse
    if a is None or b is None:
        return None
    mine, theirs = view.x + a, view.y + b
    slope = float(mine @ theirs / max(float(mine @ mine), 1e-300))
    straight = spread((theirs - slope * mine) / view.floor.scale)
    at = view.sample
    tried = []
    for cap in CAPS:
        for name, low, high in (("training", mine, theirs), ("rollout", theirs, mine)):
            tried.append((spread((high[at] - cap * np.tanh(low[at] / cap)) / view.floor.scale[at]), float(cap), name))
    rest, cap, name = min(tried)
    step = CAPS[1] / CAPS[0]
    for near in cap * np.exp(np.linspace(-np.log(step), np.log(step), 21)):
        low, high = (mine, theirs) if name == "training" else (theirs, mine)
        rest, cap = min((rest, cap), (spread((high[at] - near * np.tanh(low[at] / near)) / view.floor.scale[at]), near))
    evidence = {"capped_side": name, "softcap": float(cap), "straight_line_leaves": straight, "curve_leaves": rest}
    if name == "training":
        left = theirs - cap * np.tanh(mine / cap)
    else:
        ratio = np.clip(theirs / cap, -50, 50)
        left = cap * np.tanh(ratio) - mine
    if straight < BENT * rest or np.median(np.abs(left)) > 0.3 * np.median(view.size):
        line, left = _curve(mine, theirs, at)
        rest = spread(left / view.floor.scale)
        evidence = {"curve_by_degree": [float(c) for c in line], "straight_line_leaves": straight, "curve_leaves": rest}
        if straight < BENT * max(rest, 1.0) or (np.diff(np.polyval(line, np.sort(mine[at]))) < 0).mean() > 0.02:
            return None
    nats = gain(view.z, left / view.floor.scale) - 15.0
    if nats < LEAST_NATS or view.explained(left) < 0.3:
        return None
    return Found(kind="monotone", gain=nats, left=left, evidence=evidence)


def _curve(mine: np.ndarray, theirs: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    line = np.polyfit(mine[at], theirs[at], 3)
    return line, theirs - np.polyval(line, mine)


def _by_lists(view: View) -> Found | None:
    pairs = matched(view)
    if pairs is None:
        return None
    a, b, at = pairs.steps()
    noise = 1.5 * view.floor.scale[pairs.place][at]
    far = a < -0.2
    if far.sum() < FEWEST:
        return None
    slope = float(np.median(b[far] / a[far]))
    bent = spread(((b - slope * a) / noise)[far])
    moved = spread(((b - a) / noise)[far])
    flipped, close = _flips(view, pairs, bent)
    # lists without other logits leave it to their order: noise that bends a line this far would swap close tokens
    if moved < 6.0 or bent < 2.0 or close < FEWEST or flipped > FLIPPED or slope <= 0:
        return None
    compressed = float(np.median(np.abs(b[far]) / np.abs(a[far])))
    share = 0.8 * _gathered(pairs)
    if share < 0.2:
        return None
    left = view.d * (1.0 - share)
    # each close pair that is not swapped says once more that it is no noise
    nats = float(np.maximum(view.sums, 0.0).sum()) - 15.0 + np.log(2.0) * close * view.tokens / len(pairs.place)
    if nats < LEAST_NATS:
        return None
    return Found(
        kind="monotone",
        gain=nats,
        left=left,
        rough=True,
        confidence="medium",
        evidence={
            "median_slope": compressed,
            "distances_moved_floors": moved,
            "left_by_a_slope_floors": bent,
            "close_pairs": close,
            "close_pairs_swapped": flipped,
        },
    )


def _gathered(pairs: Matched) -> float:
    """How far the distance of a token from the likeliest decides how far it moved: 1 for a curve, 0 for noise."""
    a, b, _ = pairs.steps()
    order = np.argsort(a)
    moved = (b - a)[order]
    groups = np.array_split(moved, max(4, min(40, len(moved) // 50)))
    within = np.mean([np.var(group) for group in groups])
    return float(1.0 - within / max(float(np.var(moved)), 1e-300)) if len(moved) > 8 else 0.0


def _flips(view: View, pairs: Matched, bent: float) -> tuple[float, int]:
    """Of neighbours in the rollout's order that are nearer than the bend and clear of noise, the share swapped."""
    a, b = -np.diff(pairs.x, axis=1), -np.diff(pairs.y, axis=1)
    noise = 1.5 * view.floor.scale[pairs.place][:, None]
    close = (a > 4.0 * noise) & (a < np.maximum(bent, 8.0) * noise) & np.isfinite(b)
    count = int(close.sum())
    return (float(np.mean(b[close] < 0)) if count else 1.0), count
