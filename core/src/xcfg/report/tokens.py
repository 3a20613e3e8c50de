"""The worst tokens of a case."""

from __future__ import annotations

import numpy as np

from xcfg.model.json import Json
from xcfg.model.outcome import PairedTokens


def worst_tokens(tokens: PairedTokens | None, count: int) -> list[dict[str, Json]]:
    """The ``count`` active tokens of largest abs(dlogp), largest first; ties in (sequence, position) order."""
    if tokens is None or count == 0:
        return []
    drift = tokens.train_logp.astype(np.float64) - tokens.rollout_logp.astype(np.float64)
    order = np.argsort(-np.abs(drift), kind="stable")[:count]
    return [
        {
            "sequence": tokens.sequence_ids[int(tokens.sequence[row])],
            "position": int(tokens.position[row]),
            "token": int(tokens.token[row]),
            "rollout_logp": float(tokens.rollout_logp[row]),
            "train_logp": float(tokens.train_logp[row]),
            "dlogp": float(drift[row]),
        }
        for row in order
    ]
