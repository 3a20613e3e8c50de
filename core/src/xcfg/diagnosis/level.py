"""Drift of all tokens without a pattern: other weights, or a side that scores something else."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import Found
from xcfg.diagnosis.regions import region
from xcfg.diagnosis.shift import correlation
from xcfg.diagnosis.view import View
from xcfg.model.json import Json

UNRELATED = 0.5
NATS = 0.7
"""Median abs(d) of unsure tokens from which a low correlation means that one side scored something else."""
MOST_ROWS = 0.7


def level(view: View) -> Found | None:
    """``stale-weights`` where the sides still go together, ``scoring-path`` where one of them has left the other."""
    rows = float(np.mean(view.sums > 0)) if view.rows else 0.0
    if rows < MOST_ROWS:
        return None
    telling = view.shows >= 0.5 * view.shows.max()
    typical = float(np.median(view.size[telling]))
    together = correlation(view.x, view.y)
    ordered = correlation(_ranks(view.x[view.sample]), _ranks(view.y[view.sample]))
    signed = float(view.d.mean() / max(float(view.size.mean()), 1e-300))
    known = max([value for value in (together, ordered) if value is not None], default=0.0)
    evidence: dict[str, Json] = {
        "median_abs_d": typical,
        "median_over_floor": float(np.median(view.z[telling])),
        "rows_drifting": rows,
        "correlation": together,
        "rank_correlation": ordered,
        "mean_d_over_mean_abs_d": signed,
        "mean_rollout": float(view.x.mean()),
        "mean_training": float(view.y.mean()),
    }
    kind = "scoring-path" if known < UNRELATED and typical > NATS else "stale-weights"
    everything = np.ones(view.tokens, dtype=bool)
    return region(view, kind, everything, 5.0, evidence, confidence="medium", alone=True)


def _ranks(values: np.ndarray) -> np.ndarray:
    ranks: np.ndarray = np.argsort(np.argsort(values)).astype(np.float64)
    return ranks
