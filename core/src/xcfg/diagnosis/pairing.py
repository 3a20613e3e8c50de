"""Rows of one side that hold another row's logprobs: wrongly paired, or a step that is there twice."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import LEAST_NATS, Found
from xcfg.diagnosis.likelihood import MEDIAN
from xcfg.diagnosis.view import View

PREFIX = 32
SHORTEST = 4
LOOKED_AT = 192
FIRST = 16
"""Drifting rows that are looked at first; the others only where one of them holds another row's."""
ROW_BUDGET = 400_000
"""Rows that may be held against each other."""
BEST = 4
LEFT = 0.25
MISSING = 0.7
"""Distance of a place that a row does not reach, and the most that one place counts."""
MATCHED = 0.6
"""Of the drifting rows that were looked at, this part has its logprobs in another row."""


def pairing(view: View) -> Found | None:
    """Rows whose training logprobs are the rollout's of another row, or the other way round.

    Where the other row keeps its own logprobs, so that one side holds them twice, the kind is ``duplicated-step``.
    """
    lengths = view.observed.rows.length
    bad = np.flatnonzero((view.sums > 3.0) & (lengths >= SHORTEST))
    if len(bad) < 1 or view.rows < 2:
        return None
    sides = {"training": (view.y, view.x), "rollout": (view.x, view.y)}
    tables = {"training": _table(view, view.y), "rollout": _table(view, view.x)}
    most = int(np.clip(ROW_BUDGET // view.rows, FIRST, LOOKED_AT))
    for number in (FIRST, most):
        looked = bad[np.linspace(0, len(bad) - 1, min(len(bad), number)).astype(np.int64)]
        found = [_matched(view, looked, bad, side, own, other, tables) for side, (own, other) in sides.items()]
        best = max((item for item in found if item), key=lambda item: item.gain, default=None)
        if best is None or len(looked) == len(bad):
            break
    return best


def _matched(
    view: View,
    looked: np.ndarray,
    bad: np.ndarray,
    side: str,
    own: np.ndarray,
    other: np.ndarray,
    tables: dict[str, np.ndarray],
) -> Found | None:
    """``own`` values of the rows against both sides' values of every other row: own side first, as exact copies."""
    donors = np.full(len(looked), -1)
    won = np.zeros(len(looked))
    twice = np.zeros(len(looked), dtype=bool)
    left = np.zeros(len(looked))
    copies, table = tables[side], tables["rollout" if side == "training" else "training"]
    queries = copies[looked]
    for number, row in enumerate(looked):
        length = int(min(view.observed.rows.length[row], PREFIX))
        for candidates, same_side in ((copies, True), (table, False)):
            near = _nearest(candidates, queries[number], length, int(row))
            for donor in near:
                gained, rest = _compare(view, own, own if same_side else other, int(row), int(donor))
                if gained > won[number]:
                    donors[number], won[number], left[number] = donor, gained, rest
                    twice[number] = same_side
    price = np.log(max(view.rows, 2)) + 3.0
    ok = won > price
    if ok.mean() < MATCHED and won[ok].sum() < LEAST_NATS * 2:
        return None
    total = float((won[ok] - price).sum()) * len(bad) / len(looked)
    if total < LEAST_NATS or not ok.any():
        return None
    quiet = ~np.isin(donors[ok], bad)
    copied = _copied(view, own, looked[ok], donors[ok])
    repeats = float(np.mean(copied | (twice[ok] & quiet)))
    kind = "duplicated-step" if repeats > 0.5 else "pairing"
    inside_rows = np.zeros(view.rows, dtype=bool)
    inside_rows[bad if ok.mean() >= MATCHED and len(looked) < len(bad) else looked[ok]] = True
    gap = looked[ok] - donors[ok]
    return Found(
        kind=kind,
        gain=total,
        inside=view.of_rows(inside_rows),
        evidence={
            "side": side,
            "rows_drifting": len(bad),
            "rows_looked_at": len(looked),
            "rows_matched": int(ok.sum()),
            "rows_held_twice": int(np.count_nonzero(copied)),
            "first_row": int(looked[ok][0]),
            "first_row_holds": int(donors[ok][0]),
            "common_distance": int(np.bincount(np.abs(gap)).argmax()),
            "median_left": float(np.median(left[ok])),
        },
        confidence="high" if ok.mean() >= MATCHED else "medium",
    )


def _table(view: View, values: np.ndarray) -> np.ndarray:
    """(R, PREFIX) the first values of each row, on a scale that keeps small ones apart; infinite beyond its end."""
    starts, lengths = view.observed.starts, view.observed.rows.length
    index = starts[:, None] + np.arange(PREFIX)
    inside = np.arange(PREFIX) < lengths[:, None]
    taken = values[np.minimum(index, len(values) - 1)]
    return np.where(inside, np.log(np.abs(taken) + 0.05), np.inf).astype(np.float32)


def _nearest(table: np.ndarray, query: np.ndarray, length: int, row: int) -> np.ndarray:
    """The rows that are nearest in the median of their first values; those too short are compared as far as they go."""
    gap = np.abs(table[:, :length] - query[:length])
    far = np.minimum(gap, MISSING, out=gap).sum(axis=1)
    far[row] = np.inf
    near = np.argpartition(far, min(BEST, len(far) - 1))[:BEST] if len(far) > BEST else np.arange(len(far))
    chosen: np.ndarray = near[np.isfinite(far[near])]
    return chosen


def _compare(view: View, own: np.ndarray, source: np.ndarray, row: int, donor: int) -> tuple[float, float]:
    """Nats for the row to hold the donor's values, and the median that is left."""
    starts, lengths = view.observed.starts, view.observed.rows.length
    n = int(min(lengths[row], lengths[donor]))
    here, there = (slice(int(starts[r]), int(starts[r]) + n) for r in (row, donor))
    scale = view.floor.scale[here]
    rest = np.abs(own[here] - source[there]) / scale
    before = view.z[here]
    if np.median(rest) > LEFT * max(float(np.median(before)), 4 * MEDIAN) or rest.mean() > LEFT * 2 * before.mean():
        return 0.0, 0.0
    nats = 2.0 * (np.log1p(np.square(before) / 3.0).sum() - np.log1p(np.square(rest) / 3.0).sum())
    return float(nats), float(np.median(rest * scale))


def _copied(view: View, own: np.ndarray, rows: np.ndarray, donors: np.ndarray) -> np.ndarray:
    """Whether a row and its donor hold the very same numbers on one side, and other ones on the other."""
    starts, lengths = view.observed.starts, view.observed.rows.length
    equal = np.zeros(len(rows), dtype=bool)
    for number, (row, donor) in enumerate(zip(rows, donors, strict=True)):
        n = int(min(lengths[row], lengths[donor]))
        equal[number] = np.array_equal(own[starts[row] : starts[row] + n], own[starts[donor] : starts[donor] + n])
    return equal
