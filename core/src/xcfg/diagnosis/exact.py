"""Values that no engine computes: zeros where there is nothing, a constant end, a probability above one."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import Found
from xcfg.diagnosis.view import View

ABOVE = 1e-3
"""Nats above 0 that rounding explains (measurement contract)."""
BEYOND = 6.0
"""Usual scales of the dtype that noise may take a sure token above 0."""
CLEAR = 6.0
FEWEST = 3
RUN = 3
COMMON = 0.8
REACHED = 0.5
"""Of the rows that reach the place, this part is cut there: a few equal values end a row by chance."""
LIKE = 0.6
"""Zeros that were put in stand where the other side is as unsure as elsewhere, at its upper quartile."""


def padded_zero(view: View) -> Found | None:
    """Exact zeros on one side where the other side has a logprob below the floor, at sure and unsure tokens alike."""
    found = []
    for side, own, other in (("training", view.y, view.x), ("rollout", view.x, view.y)):
        shown = np.abs(other) > CLEAR * view.floor.scale
        zero = (own == 0.0) & shown
        count = int(zero.sum())
        unsure = np.abs(other[zero])
        if count < FEWEST or np.quantile(unsure, 0.75) < LIKE * np.quantile(np.abs(other[shown]), 0.75):
            continue  # a token that is nearly certain has a logprob of 0
        found.append(
            Found(
                kind="padded-zero",
                gain=_nats(view, zero) + 3.0 * count,
                inside=zero,
                certain=True,
                evidence={
                    "side": side,
                    "zeros": count,
                    "share_of_tokens": count / view.tokens,
                    "mean_abs_of_other_side": float(unsure.mean()),
                    "zeros_on_other_side": int(np.count_nonzero(other == 0.0)),
                },
            )
        )
    return max(found, key=lambda item: item.gain, default=None)


def above_zero(view: View) -> Found | None:
    """Logprobs above 0 by more than rounding and the floor explain."""
    found = []
    for side, own, other in (("training", view.y, view.x), ("rollout", view.x, view.y)):
        least = max(ABOVE, BEYOND * view.floor.typical)
        above = (own > np.maximum(least, CLEAR * view.floor.scale)) & (other <= ABOVE)
        count = int(above.sum())
        below = int(np.count_nonzero((other - own > least) & (other > -least)))  # noise is as often on that side
        if count < 2 + 3 * below:
            continue
        found.append(
            Found(
                kind="above-zero",
                gain=_nats(view, above) + 3.0 * count,
                inside=above,
                certain=True,
                evidence={
                    "side": side,
                    "above_zero": count,
                    "share_of_tokens": count / view.tokens,
                    "largest": float(own.max()),
                },
            )
        )
    return max(found, key=lambda item: item.gain, default=None)


def truncated(view: View) -> Found | None:
    """Rows that end in one repeated value on one side, from a common place on."""
    found = []
    for side, own, other in (("training", view.y, view.x), ("rollout", view.x, view.y)):
        inside, rows = _constant_ends(view, own, other)
        if not inside.any():
            continue
        first = view.observed.starts + view.observed.rows.length - view.by_row(inside.astype(np.int64)).astype(np.int64)
        at, name, share = _common(view, first[rows], rows)
        count = int(inside.sum())
        nats = _nats(view, inside) + 3.0 * count
        if share < COMMON or nats < 10.0 or len(rows) < REACHED * _reaching(view, at, name):
            continue
        found.append(
            Found(
                kind="truncated",
                gain=nats + 10.0,
                inside=inside,
                certain=True,
                evidence={
                    "side": side,
                    "from": at,
                    "counted_in": name,
                    "value": float(own[int(first[rows][0])]),
                    "rows": len(rows),
                    "rows_from_there": share,
                    "tokens": count,
                },
            )
        )
    return max(found, key=lambda item: item.gain, default=None)


def _nats(view: View, inside: np.ndarray) -> float:
    return float(2.0 * np.log1p(np.square(view.z[inside]) / 3.0).sum())


def _constant_ends(view: View, own: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of runs of one value up to a row's end, where the other side is not constant; and the rows."""
    starts, lengths = view.observed.starts, view.observed.rows.length
    ends = starts + lengths - 1
    last = np.repeat(own[ends], lengths)
    unlike = own != last
    breaks = np.where(unlike, np.arange(view.tokens), -1)
    latest = np.maximum.reduceat(breaks, starts)
    run = ends - np.maximum(latest, starts - 1)
    inside = np.arange(view.tokens) > np.repeat(np.maximum(latest, starts - 1), lengths)
    drifting = view.by_row((inside & (view.z > CLEAR)).astype(np.float64)) >= np.maximum(2, 0.3 * run)
    rows = np.flatnonzero((run >= RUN) & drifting)
    marks = np.zeros(view.rows, dtype=bool)
    marks[rows] = True
    return inside & np.repeat(marks, lengths), rows


def _reaching(view: View, at: int, name: str) -> int:
    """The rows that go on from there for a run or more."""
    last = view.observed.position[view.observed.starts + view.observed.rows.length - 1]
    if name != "response" and view.observed.rows.prompt_length is not None:
        last = last + view.observed.rows.prompt_length
    return int(np.count_nonzero(last >= at + RUN - 1))


def _common(view: View, first: np.ndarray, rows: np.ndarray) -> tuple[int, str, float]:
    """The place from which most rows are constant: in the response, or in prompt and response."""
    position = view.observed.position[first]
    columns = {"response": position}
    if view.observed.rows.prompt_length is not None:
        columns["prompt and response"] = position + view.observed.rows.prompt_length[rows]
    best = (0, "", 0.0)
    for name, places in columns.items():
        values, counts = np.unique(places, return_counts=True)
        near = [float(counts[(values >= v - 1) & (values <= v)].sum()) / len(places) for v in values[:2000]]
        at = int(np.argmax(near))
        if near[at] > best[2]:
            best = (int(values[at]), name, near[at])
    return best
