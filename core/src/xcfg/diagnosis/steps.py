"""Drift that grows along a run of steps, and falls back where the run was started anew."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import Found
from xcfg.diagnosis.likelihood import spread
from xcfg.diagnosis.regions import region
from xcfg.diagnosis.view import View

FEWEST = 3
RESET = 0.5
"""A level below this part of the one before begins a new run."""
GREW = 2.0
ORDERED = 0.7
CLEAR = 5.0


def steps_growth(view: View) -> Found | None:
    """Mean abs(d) by step rises within each run of steps, by a factor of 2 or more, in the order of the steps."""
    step = view.observed.rows.step
    if step is None or view.rows < FEWEST:
        return None
    ids, place = np.unique(step, return_inverse=True)
    place = place.ravel()
    if len(ids) < FEWEST:
        return None
    lengths = view.observed.rows.length
    capped = np.minimum(view.z, np.quantile(view.z[view.sample], 0.99))
    by_row = view.by_row(capped) / lengths
    level = np.bincount(place, weights=by_row * lengths) / np.bincount(place, weights=lengths)
    run, since = _runs(level)
    order = _rank_correlation(since.astype(np.float64), level)
    longest = max(range(run[-1] + 1), key=lambda number: int(np.count_nonzero(run == number)))
    inside_run = level[run == longest]
    if len(inside_run) < FEWEST or np.count_nonzero(run == longest) < 3:
        return None
    ratio = float(inside_run[-1] / max(float(inside_run[0]), 1e-300))
    rises = float(np.mean(np.diff(level)[run[1:] == run[:-1]] > 0))
    clear = _clear(since[place].astype(np.float64), np.log(by_row + 0.1), place, len(ids))
    if order < ORDERED or ratio < GREW or rises < ORDERED or clear < CLEAR or len(inside_run) * 4 < len(level):
        return None
    found = region(view, "steps-growth", np.ones(view.tokens, dtype=bool), -np.inf, {}, alone=True)
    if found is None:
        return None
    # each step has a width of its own
    nats = sum(_nats(view.z[view.of_rows(place == number)]) for number in range(len(ids))) - 2.0 * len(ids)
    return Found(
        kind="steps-growth",
        gain=max(nats, float(np.maximum(view.sums, 0.0).sum())),
        inside=np.ones(view.tokens, dtype=bool),
        confidence="high" if len(ids) >= 5 else "medium",
        evidence={
            "steps": len(ids),
            "resets": int(run[-1]),
            "reset_at_steps": ids[1:][np.diff(run) > 0][:8].tolist(),
            "last_over_first": ratio,
            "rank_correlation": order,
            "part_of_steps_that_rise": rises,
            "t_of_rows": clear,
        },
    )


def _nats(z: np.ndarray) -> float:
    wide = max(spread(z), 1.0)
    return float((2.0 * (np.log1p(z * z / 3.0) - np.log1p(z * z / (3.0 * wide * wide)))).sum() - len(z) * np.log(wide))


def _runs(level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of the run that each step is in, and the steps since it began."""
    run = np.concatenate([[0], np.cumsum(level[1:] < RESET * level[:-1])])
    first = np.concatenate([[True], run[1:] != run[:-1]])
    begun = np.maximum.accumulate(np.where(first, np.arange(len(level)), 0))
    return run, np.arange(len(level)) - begun


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    order = np.argsort(np.argsort(b)).astype(np.float64)
    return float(np.corrcoef(a, order)[0, 1]) if a.std() > 0 and order.std() > 0 else 0.0


def _clear(since: np.ndarray, size: np.ndarray, place: np.ndarray, steps: int) -> float:
    """Student's t of the slope over rows; a step of one row has to show by itself."""
    n = len(size)
    if n < 3 or since.std() == 0 or size.std() == 0:
        return 0.0
    r = float(np.clip(np.corrcoef(since, size)[0, 1], -0.999999, 0.999999))
    return r * float(np.sqrt((n - 2) / (1.0 - r * r)))
