"""Along the rows: from a length on, from a place of their own on, up to a place, or in between."""

from __future__ import annotations

import math

import numpy as np

from xcfg.diagnosis.found import Found
from xcfg.diagnosis.grid import Grid, on_grid
from xcfg.diagnosis.regions import choice, region
from xcfg.diagnosis.spans import Spans, Sums, marks, places
from xcfg.diagnosis.view import View
from xcfg.model.json import Json

ROW_NATS = 6.0
SHORTEST = 4
COMMON = 0.7
"""Of the rows that reach a length, this part drifts from there on."""


def course(view: View) -> list[Found]:
    """Spans of the rows, and a length that all share."""
    if view.tokens < SHORTEST:
        return []
    sums = Sums.of(view)
    spans = [_tails(view, sums), _heads(view, sums), _stretches(view, sums)]
    best = max((item for item in spans if item), key=lambda item: item.gain, default=None)
    return [item for item in (_length(view), best) if item]


def _length(view: View) -> Found | None:
    best: tuple[float, int, str, np.ndarray] | None = None
    for name, place in places(view).items():
        if not len(place) or place.min() < 0 or place.max() > 1 << 24:
            continue
        by_place = np.bincount(place, weights=view.score)
        beyond = np.cumsum(by_place[::-1])[::-1]
        at = int(np.argmax(beyond))
        if best is None or beyond[at] > best[0]:
            best = (float(beyond[at]), at, name, place)
    if best is None:
        return None
    _, at, name, place = best
    inside = place >= at
    reach = view.by_row(inside.astype(np.int64)) >= SHORTEST
    under = view.by_row((~inside).astype(np.int64)) > 0
    drifts = view.by_row(np.where(inside, view.score, 0.0)) > 0
    rows = int(reach.sum())
    if rows < 3 or np.mean(drifts[reach]) < COMMON or not (under & reach).sum() >= 0.5 * rows:
        return None
    evidence: dict[str, Json] = {
        "from": at,
        "counted_in": name,
        "rows_that_reach_it": rows,
        "of_them_drifting": float(np.mean(drifts[reach])),
    }
    return region(view, "length", inside, math.log(max(2, int(place.max()))) + 3.0, evidence)


def _chosen(view: View, spans: Spans, edges: int) -> tuple[np.ndarray, float]:
    """The rows whose span pays for its edges, and the price of all."""
    price = edges * np.log(np.maximum(view.observed.rows.length, 2)) + 1.0
    rows = np.flatnonzero((spans.nats > price + ROW_NATS) & (spans.after - spans.first >= SHORTEST))
    return rows, float(price[rows].sum()) + choice(view.rows, len(rows)) + 3.0


def _inner(view: View, spans: Spans, rows: np.ndarray, *, begins: bool) -> np.ndarray:
    """Of these rows, those whose span leaves some of the row outside, at its beginning or at its end."""
    starts, lengths = view.observed.starts[rows], view.observed.rows.length[rows]
    room = spans.first[rows] - starts if begins else starts + lengths - spans.after[rows]
    inner: np.ndarray = rows[room >= np.maximum(2, 0.03 * lengths)]
    return inner


def _tails(view: View, sums: Sums) -> Found | None:
    spans = sums.tails()
    rows, price = _chosen(view, spans, 1)
    inner = _inner(view, spans, rows, begins=True)
    if not len(inner) or len(inner) < 0.5 * len(rows):
        return None
    first = spans.first[inner]
    evidence: dict[str, Json] = {
        "rows": len(rows),
        "of_rows": view.rows,
        "first_position": int(view.observed.position[first].min()),
        "last_position": int(view.observed.position[first].max()),
    }
    grid = on_grid(view, sums, first, inner)
    confidence = "high" if len(inner) >= 3 else "medium"
    kind = "stale-tail" if grid is None else "block"
    return region(view, kind, marks(view, spans, rows), price, evidence | _of(grid), confidence=confidence)


def _heads(view: View, sums: Sums) -> Found | None:
    spans = sums.heads()
    rows, price = _chosen(view, spans, 1)
    inner = _inner(view, spans, rows, begins=False)
    if not len(inner) or len(inner) < 0.5 * len(rows):
        return None
    grid = on_grid(view, sums, spans.after[inner], inner)
    evidence: dict[str, Json] = {
        "rows": len(rows),
        "of_rows": view.rows,
        "shortest": int((spans.after - spans.first)[inner].min()),
        "longest": int((spans.after - spans.first)[inner].max()),
    }
    confidence = "high" if grid is not None else "medium"
    inside = marks(view, spans, rows)
    return region(view, "stale-prefix", inside, price, evidence | _of(grid), confidence=confidence)


def _stretches(view: View, sums: Sums) -> Found | None:
    spans = sums.stretches()
    rows, price = _chosen(view, spans, 2)
    inner = np.intersect1d(_inner(view, spans, rows, begins=True), _inner(view, spans, rows, begins=False))
    if not len(inner) or len(inner) < 0.5 * len(rows):
        return None
    up = on_grid(view, sums, spans.first[inner], inner)
    down = on_grid(view, sums, spans.after[inner], inner)
    grid = max((item for item in (up, down) if item), key=lambda item: item.lost_off - item.lost, default=None)
    if grid is None:
        return None
    evidence: dict[str, Json] = {"rows": len(rows), "of_rows": view.rows}
    return region(view, "block", marks(view, spans, rows), price, evidence | _of(grid))


def _of(grid: Grid | None) -> dict[str, Json]:
    if grid is None:
        return {"block": None}
    return {
        "block": grid.size,
        "counted_in": grid.counted_in,
        "nats_lost_on_the_grid": grid.lost,
        "nats_lost_beside_it": grid.lost_off,
    }
