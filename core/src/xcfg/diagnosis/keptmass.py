"""Logprobs renormalised on the kept tokens: top-p, top-k, min-p."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import LEAST_NATS, Found
from xcfg.diagnosis.lists import matched
from xcfg.diagnosis.regions import beyond
from xcfg.diagnosis.view import HOT, View

ONE_SIDED = 0.97
SLIGHT = 2.5
SLIGHTEST = 0.7
ONE_SIDED_SLIGHT = 0.9
CLEAR = 6.0
FEWEST = 12
BOUND = 0.97
SURE = 0.35
"""Drift of the surest tokens against that of all: their whole mass is kept."""


def kept_mass(view: View) -> Found | None:
    """D of one sign on the drifting tokens, never more than the raw logprob, and vanishing at sure tokens.

    d = -+ log of the kept mass, so exp(-mean abs d) is the mass in the mean.
    """
    tilt = _tilt(view)
    if tilt < CLEAR:
        return None
    levels = (view.hot, view.z > SLIGHT, view.z > SLIGHTEST)
    drawn = next((marks for marks in levels[1:] if np.mean(marks) > 0.1), levels[-1])
    hot = next((marks for marks in levels if np.mean(marks) > 0.05), levels[-1])
    count = int(hot.sum())
    if count < FEWEST or count < 0.02 * view.tokens:
        return None
    if abs(np.mean(np.sign(view.d[drawn]))) < 2 * ONE_SIDED_SLIGHT - 1:
        return None
    up = float(np.mean(view.d[hot] > 0))
    sign = 1.0 if up >= 0.5 else -1.0
    same = max(up, 1.0 - up)
    if view.rows < 4 and beyond(view, np.ones(view.tokens, dtype=bool)) < 1.0:
        return None
    raw = -view.x if sign > 0 else -view.y
    within = float(np.mean((view.size <= raw + 4.0 * view.floor.scale)[hot]))
    if same < ONE_SIDED or within < BOUND:
        return None
    order = np.quantile(raw, [0.3, 0.7])
    sure, unsure = view.size[raw <= order[0]], view.size[raw >= order[1]]
    ratio = float(np.mean(sure) / max(float(np.mean(unsure)), 1e-300)) if len(sure) and len(unsure) else 1.0
    if ratio > SURE or np.std(view.size[hot]) == 0:
        return None
    flat = _flat(view)
    if flat is not None and flat > 0.3:
        return None
    left = view.d - sign * np.where(view.z > 2.0, np.maximum(view.size - view.floor.scale, 0.0), 0.0)
    scored = float(np.maximum(view.score[hot], 0.0).sum()) + float(drawn.sum()) * np.log(2.0)
    nats = scored - 10.0
    if nats < LEAST_NATS:
        return None
    mass = np.exp(-np.clip(sign * view.d, 0.0, None))
    return Found(
        kind="kept-mass",
        gain=nats + _exactness(view, flat),
        left=left,
        rough=True,
        confidence="high" if flat is not None and same > 0.99 else "medium",
        evidence={
            "renormalised_side": "training" if sign > 0 else "rollout",
            "mean_ratio": float(np.mean(np.exp(np.clip(-sign * view.d, -700, 700)))),
            "least_kept_mass": float(np.quantile(mass, 0.01)),
            "drifting_tokens": count,
            "same_sign": same,
            "within_raw_logprob": within,
            "sure_over_unsure": ratio,
            "t_of_rows": tilt,
            "lists_moved_unevenly": flat,
        },
    )


def _tilt(view: View) -> float:
    """Student's t over rows, of the mean of d in floors, each token's bounded: rows may share their noise."""
    by_row = view.by_row(np.clip(view.d / view.floor.scale, -HOT, HOT)) / view.observed.rows.length
    if len(by_row) < 4:  # a single row is its own tokens
        by_row = np.clip(view.d / view.floor.scale, -HOT, HOT)
    wide = float(by_row.std(ddof=1)) if len(by_row) > 1 else 0.0
    return abs(float(by_row.mean())) / max(wide, 1e-9) * float(np.sqrt(len(by_row)))


def _flat(view: View) -> float | None:
    """How unevenly a place's tokens moved, against how far: 0 where a normaliser alone moved them."""
    pairs = matched(view)
    if pairs is None:
        return None
    a, b, at = pairs.steps()
    shift = np.abs(pairs.y[:, 0] - pairs.x[:, 0])[at]
    moved = shift > 4.0 * view.floor.scale[pairs.place][at]
    if moved.sum() < FEWEST:
        return None
    return float(np.median(np.abs(b - a)[moved]) / np.median(shift[moved]))


def _exactness(view: View, flat: float | None) -> float:
    return 0.0 if flat is None else 0.5 * float(np.count_nonzero(view.hot))
