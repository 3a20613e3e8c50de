"""Blocks: some of them drift as a whole, or each of them at the same place inside."""

from __future__ import annotations

import math

import numpy as np

from xcfg.diagnosis.found import Found
from xcfg.diagnosis.regions import choice, region
from xcfg.diagnosis.spans import places
from xcfg.diagnosis.view import View

SIZES = (16, 32, 64, 128, 256, 512)
TOKENS = 150_000
"""Whole rows of about this many tokens decide on the size; all of them are then measured."""
CELL_NATS = 3.0
CLEAR = 12.0
BETTER = 1.02
BEGINNING = 0.8
NARROW = 0.35
"""A place inside the blocks is at most this part of them."""


def blocks(view: View) -> list[Found]:
    """The best size for blocks that drift as a whole, and for one place inside each block."""
    if view.tokens < 4 * SIZES[0]:
        return []
    found = [_cells(view), _folded(view)]
    return [item for item in found if item]


def _cells(view: View) -> Found | None:
    some = _some(view)
    best: tuple[float, int, str, float] | None = None
    for name, place in places(view).items():
        for size in SIZES:
            on = _won(view, place, size, 0, some)[0]
            off = max(_won(view, place, size, size * part // 4, some)[0] for part in (1, 2, 3))
            if on < off * BETTER or on - off < CLEAR:
                continue
            if best is None or on > best[0]:
                best = (on, size, name, off)
    if best is None:
        return None
    on, size, name, off = best
    nats, inside, cells, hot = _won(view, places(view)[name], size, 0, slice(0, view.tokens))
    if hot == cells or not hot:
        return None
    evidence = {
        "block": size,
        "counted_in": name,
        "blocks_drifting": hot,
        "blocks": cells,
        "nats_on_the_grid": on,
        "nats_beside_it": off,
    }
    kind = "stale-prefix" if _from_the_beginning(view, inside) > BEGINNING else "block"
    return region(view, kind, inside, float(view.score[inside].sum()) - nats, evidence)


def _from_the_beginning(view: View, inside: np.ndarray) -> float:
    """Of the stretches of drifting blocks, the share that begins with its row."""
    starts = view.observed.starts
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    begins[starts] = inside[starts]
    return float(inside[starts].sum()) / max(1, int(begins.sum()))


def _won(view: View, place: np.ndarray, size: int, phase: int, some: slice) -> tuple[float, np.ndarray, int, int]:
    """Nats of the blocks that drift, their tokens, the number of blocks and of those that drift."""
    number = (place[some] - phase) // size
    row = view.observed.row[some]
    new = np.flatnonzero((np.diff(number) != 0) | (np.diff(row) != 0)) + 1
    first = np.concatenate([[0], new])
    sums = np.add.reduceat(view.score[some], first)
    hot = sums > CELL_NATS
    count = int(hot.sum())
    inside = np.repeat(hot, np.diff(np.append(first, len(row))))
    return float(sums[hot].sum()) - choice(len(first), count) - 6.0, inside, len(first), count


def _folded(view: View) -> Found | None:
    best: tuple[float, int, str, np.ndarray] | None = None
    for name, place in places(view).items():
        for size in SIZES:
            if place.max() - place.min() < 2 * size:
                continue
            sums = np.bincount(place % size, weights=view.score, minlength=size)
            hot = sums > 2.0
            count = int(hot.sum())
            if not 0 < count <= NARROW * size:
                continue
            nats = float(sums[hot].sum()) - choice(size, count) - 6.0
            if best is None or nats > best[0] + 4.0:
                best = (nats, size, name, hot)
    if best is None:
        return None
    _, size, name, hot = best
    place = places(view)[name] % size
    inside = hot[place]
    evidence = {"block": size, "counted_in": name, "at_remainders": np.flatnonzero(hot)[:16].tolist()}
    return region(view, "block", inside, choice(size, int(hot.sum())) + math.log(2 * len(SIZES)) + 4.0, evidence)


def _some(view: View) -> slice:
    """Whole rows at the stretch that scores most."""
    if view.tokens <= TOKENS:
        return slice(0, view.tokens)
    starts = view.observed.starts
    total = np.concatenate([[0.0], np.cumsum(np.maximum(view.score, 0.0))])
    first = starts[:: max(1, len(starts) // 32)]
    first = first[first + TOKENS <= view.tokens] if (first + TOKENS <= view.tokens).any() else first[:1]
    at = int(first[np.argmax(total[np.minimum(first + TOKENS, view.tokens)] - total[first])])
    return slice(at, min(at + TOKENS, view.tokens))
