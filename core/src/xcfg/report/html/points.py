"""The tokens of a case as the page draws them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import numpy as np

from xcfg.model.json import Json
from xcfg.report.html.thinning import thinned

if TYPE_CHECKING:
    from xcfg.model.outcome import PairedTokens

BINS = 60


def points(tokens: PairedTokens | None, room: int) -> dict[str, Json] | None:
    """Drawn tokens as base64 of little-endian float32: ``position``, ``rollout`` and ``drift``, which is d, in nats.

    ``all`` counts every token and the histogram is of all of them; ``not_finite`` are in neither.
    """
    if tokens is None or not len(tokens.position):
        return None
    drift = tokens.train_logp.astype(np.float64) - tokens.rollout_logp.astype(np.float64)
    finite = np.isfinite(drift)
    kept = thinned(drift[finite], room)
    edges, counts = _histogram(drift[finite])
    return {
        "all": len(drift),
        "not_finite": int((~finite).sum()),
        "drawn": len(kept),
        "position": _packed(tokens.position[finite][kept]),
        "rollout": _packed(tokens.rollout_logp[finite][kept]),
        "drift": _packed(drift[finite][kept]),
        "edges": edges,
        "counts": counts,
    }


def _packed(values: np.ndarray) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def _histogram(drift: np.ndarray) -> tuple[list[Json], list[Json]]:
    """Equal bins around 0 as wide as the largest abs(d); one bin where every d is 0."""
    if not len(drift):
        return [], []
    reach = float(np.abs(drift).max())
    if reach == 0:
        return [0.0, 0.0], [len(drift)]
    counts, edges = np.histogram(drift, bins=BINS, range=(-reach, reach))
    return edges.tolist(), counts.tolist()
