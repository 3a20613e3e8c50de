"""How the drift of a case runs along the responses, in a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xcfg.model.json import Json

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome

PARTS = 16


def drift_profile(outcome: CaseOutcome) -> list[Json]:
    """Largest abs(d), nats, in each of 16 equal parts of the longest response, or of its tokens where it has fewer.

    Null where no finite token lies; empty where nothing was compared.
    """
    tokens = outcome.tokens
    if tokens is None or not len(tokens.position):
        return []
    drift = np.abs(tokens.train_logp.astype(np.float64) - tokens.rollout_logp.astype(np.float64))
    longest = int(tokens.position.max()) + 1
    parts = min(PARTS, longest)
    most = np.full(parts, -1.0)
    part = tokens.position * parts // longest
    finite = np.isfinite(drift)
    np.maximum.at(most, part[finite], drift[finite])
    return [None if value < 0 else float(value) for value in most]
