"""Edges on a grid: do spans start and end at multiples of a block, a chunk or a page?"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from xcfg.diagnosis.spans import Sums, places
from xcfg.diagnosis.view import View

SIZES = (2048, 1024, 512, 256, 128, 64, 32, 16)
PHASES = 8
MOST = 20.0
"""Nats that one edge can lose off the grid: a single edge decides nothing."""
BETTER = 0.35
CLEAR = 10.0


@frozen(kw_only=True)
class Grid:
    """Edges lie at multiples of ``size`` counted in ``counted_in``. ``lost`` nats on it, ``lost_off`` beside it."""

    size: int
    counted_in: str
    lost: float
    lost_off: float


def on_grid(view: View, sums: Sums, edges: np.ndarray, rows: np.ndarray) -> Grid | None:
    """The widest grid on which the edges lose next to nothing, while on one moved aside they lose clearly.

    ``edges`` (E,) are flat places of the first token after the edge, ``rows`` their rows.
    """
    best: Grid | None = None
    limits = view.observed.starts[rows], view.observed.starts[rows] + view.observed.rows.length[rows]
    for name, place in places(view).items():
        for size in SIZES:
            lost = [_lost(view, sums, place, edges, limits, size, phase * size // PHASES) for phase in range(PHASES)]
            off = float(np.mean(lost[1:]))
            if lost[0] > BETTER * off or off - lost[0] < CLEAR or lost[0] > min(lost[1:]):
                continue
            found = Grid(size=size, counted_in=name, lost=lost[0], lost_off=off)
            if best is None or off - lost[0] > 1.5 * (best.lost_off - best.lost):
                best = found
    return best


def _lost(
    view: View,
    sums: Sums,
    place: np.ndarray,
    edges: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    size: int,
    phase: int,
) -> float:
    """Nats that the edges lose when each moves to its nearest multiple, on the better side."""
    at = np.minimum(edges, view.tokens - 1)
    here = place[at] + (edges - at)
    down = (here - phase) % size
    best = np.full(len(edges), MOST)
    for move in (-down, (size - down) % size):
        to = edges + move
        ok = (to > limits[0]) & (to < limits[1])
        to = np.clip(to, limits[0], limits[1] - 1)
        change = np.abs(sums.before[np.minimum(edges, limits[1] - 1)] - sums.before[to])
        best = np.minimum(best, np.where(ok, change, MOST))
    return float(best.sum())
