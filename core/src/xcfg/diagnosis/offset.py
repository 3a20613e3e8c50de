"""The same drift on every token: the normaliser of one side is another."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import LEAST_NATS, Found
from xcfg.diagnosis.likelihood import gain
from xcfg.diagnosis.view import View

TIGHT = 0.25
"""The middle half of the tokens lies within this part of the offset."""
FEWEST = 16


def constant_offset(view: View) -> Found | None:
    """One d for nearly all tokens, or one that the log-sum-exp alone decides (rows added to the vocabulary)."""
    if view.tokens < FEWEST:
        return None
    low, offset, high = (float(q) for q in np.quantile(view.d, [0.25, 0.5, 0.75]))
    found = []
    least = float(np.median(view.floor.scale))
    if offset and high - low < 2 * TIGHT * abs(offset) and abs(offset) > 0.5 * least:
        left = view.d - offset
        found.append(_found(view, left, {"offset": offset, "interquartile_range": high - low}))
    if padded := _padded(view):
        found.append(padded)
    return max((item for item in found if item), key=lambda item: item.gain, default=None)


def _padded(view: View) -> Found | None:
    """D = -+ log(1 + K exp(-lse)): K added terms of logit 0 in one side's normaliser, all the others unchanged."""
    best = None
    for side, sign, lse in _normalisers(view):
        if lse is None or not len(lse):
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            terms = float(np.median(np.expm1(np.clip(sign * view.d, -50, 50)) * np.exp(np.minimum(lse, 500.0))))
            if not np.isfinite(terms) or terms <= 0:
                continue
            model = sign * np.log1p(terms * np.exp(-lse))
        share = np.abs(model).sum() / max(view.size.sum(), 1e-300)
        if not 0.6 < share < 1.6 or np.median(np.abs(view.d - model)) > TIGHT * np.median(np.abs(model)):
            continue
        item = _found(view, view.d - model, {"side": side, "added_terms": terms, "offset": float(np.median(model))})
        if item and (best is None or item.gain > best.gain):
            best = item
    return best


def _found(view: View, left: np.ndarray, evidence: dict[str, object]) -> Found | None:
    nats = gain(view.z, left / view.floor.scale) - 5.0
    if nats < LEAST_NATS:
        return None
    sure = np.abs(view.d[view.uncertain < np.quantile(view.uncertain, 0.25)])
    evidence["same_sign"] = float(max(np.mean(view.d > 0), np.mean(view.d < 0)))
    evidence["median_abs_d_of_surest_quarter"] = float(np.median(sure)) if len(sure) else None
    return Found(kind="constant-offset", gain=nats, left=left, evidence=evidence)


def _normalisers(view: View) -> list[tuple[str, float, np.ndarray | None]]:
    """The side with the added terms, the sign of d that they make, and the normaliser without them."""
    return [("training", -1.0, view.observed.rollout.lse), ("rollout", 1.0, view.observed.training.lse)]
