"""Which tokens of a case are drawn where there are more than a page can hold."""

from __future__ import annotations

import numpy as np

EXTREMES = 4
"""One of so many drawn tokens is kept for its size; the others stand for the rest."""


def thinned(drift: np.ndarray, room: int) -> np.ndarray:
    """Indices of at most ``room`` tokens, ascending: the largest abs(d) and every n-th of the others.

    ``drift`` is (A,) in nats; what is not finite counts as largest.
    """
    if len(drift) <= room:
        return np.arange(len(drift))
    size = np.where(np.isfinite(drift), np.abs(drift), np.inf)
    largest = np.argsort(-size, kind="stable")[: max(room // EXTREMES, 1)]
    others = np.setdiff1d(np.arange(len(drift)), largest)
    kept = room - len(largest)
    even = others[np.linspace(0, len(others) - 1, kept).round().astype(np.int64)] if kept else others[:0]
    return np.sort(np.concatenate([largest, np.unique(even)]))
