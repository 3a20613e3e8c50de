"""One side shifted by k tokens within its rows."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import LEAST_NATS, Found
from xcfg.diagnosis.likelihood import spread
from xcfg.diagnosis.view import View

FURTHEST = 8
ROW_NATS = 4.0
"""A row counts as shifted when the shift wins it this much."""
LEFT = 0.3
"""A shift leaves at most this part of the mean abs(d): unrelated logprobs are equally far apart at every shift."""


def shift(view: View) -> Found | None:
    """Rows in which training[i + k] is rollout[i], k from -8 to 8 and not 0."""
    steps = [k for size in range(1, FURTHEST + 1) for k in (size, -size)]
    within = _first_rows(view)
    tried = [(_gain(view, k, within), k) for k in steps]
    best, k = max(tried)
    if best < LEAST_NATS and not (within.stop == view.tokens and best > 0):
        return None
    here, there = _pairs(view, k, slice(0, view.tokens))
    at_0, moved = view.d[here], view.y[there] - view.x[here]
    offset = float(np.median(moved))  # of another fault; it stays in what is left
    moved = moved - offset
    scale = view.floor.scale[here]
    row = view.observed.row[here]
    won = _nats(at_0 / scale) - _nats(moved / scale)
    by_row = np.bincount(row, weights=won, minlength=view.rows)
    rows = by_row > ROW_NATS
    chosen = rows[row]
    if np.count_nonzero(chosen) < 8:
        return None
    before, after = float(np.abs(at_0[chosen]).mean()), float(np.abs(moved[chosen]).mean())
    wide = max(spread(moved[chosen] / scale[chosen]), 1.0)
    total = float(by_row[rows].sum()) - np.count_nonzero(rows) * np.log(2.0) - np.log(2 * FURTHEST)
    if after > LEFT * before or total < LEAST_NATS or wide > 0.5 * max(spread(at_0[chosen] / scale[chosen]), 1.0):
        return None
    left = view.d.copy()
    left[view.of_rows(rows)] = 0.0
    left[here[chosen]] = moved[chosen] + offset
    return Found(
        kind="shift",
        gain=total,
        left=left,
        inside=None,
        evidence={
            "shift": k,
            "rows_shifted": int(rows.sum()),
            "rows": view.rows,
            "tokens_compared": int(chosen.sum()),
            "mean_abs_at_0": before,
            "mean_abs_at_shift": after,
            "median_at_shift": offset,
            "correlation_at_0": correlation(view.y[here[chosen]], view.x[here[chosen]]),
            "correlation_at_shift": correlation(view.y[there[chosen]], view.x[here[chosen]]),
        },
    )


def correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    """Pearson's; None where one is constant."""
    if len(a) < 2 or a.std() == 0 or b.std() == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _nats(z: np.ndarray) -> np.ndarray:
    nats: np.ndarray = 2.0 * np.log1p(np.square(z) / 3.0)
    return nats


def _first_rows(view: View) -> slice:
    """Whole rows from those that drift most on: about as many tokens as a sample, at one stretch."""
    size = 40_000
    if view.tokens <= size:
        return slice(0, view.tokens)
    mass = np.concatenate([[0.0], np.cumsum(np.minimum(view.z, 50.0))])
    starts = np.arange(0, view.tokens - size, size // 2)
    first = int(starts[np.argmax(mass[starts + size] - mass[starts])])
    return slice(first, first + size)


def _pairs(view: View, k: int, within: slice) -> tuple[np.ndarray, np.ndarray]:
    """Places of rollout tokens and of the tokens k further in the same row, where both are adjacent as recorded."""
    row, position = view.observed.row[within], view.observed.position[within]
    n, far = len(row), abs(k)
    if n <= far:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    same = (row[far:] == row[:-far]) & (position[far:] - position[:-far] == far)
    low = np.flatnonzero(same) + within.start
    return (low, low + far) if k > 0 else (low + far, low)


def _gain(view: View, k: int, within: slice) -> float:
    """Nats of the rows that the shift wins, against none."""
    here, there = _pairs(view, k, within)
    if len(here) < 8:
        return -np.inf
    scale = view.floor.scale[here]
    moved = view.y[there] - view.x[here]
    won = _nats(view.z[here]) - _nats((moved - np.median(moved)) / scale)
    row = view.observed.row[here]
    by_row = np.bincount(row - row[0], weights=won) if row[-1] >= row[0] else np.zeros(1)
    return float(np.maximum(by_row - ROW_NATS, 0.0).sum())
