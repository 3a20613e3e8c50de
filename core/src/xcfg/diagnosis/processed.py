"""Logits processors: a few token ids moved by a bias or penalty, the others by the normaliser alone."""

from __future__ import annotations

import numpy as np

from xcfg.diagnosis.found import LEAST_NATS, Found
from xcfg.diagnosis.likelihood import spread
from xcfg.diagnosis.view import View

FEW = 0.2
"""Moved ids are at most this part of the ids seen ..."""
MOST = 0.6
"""... and their tokens at most this part of the tokens."""
PURE = 0.8
SURE = -0.02
"""A token of larger logprob has log-odds that noise decides."""
UNEVEN = 0.4
REPEATED = 3.0


def processed(view: View) -> Found | None:
    """Ids whose every token drifts by about one amount; or tokens the row held before, against new ones."""
    if np.count_nonzero(view.hot) < 6:
        return None
    found = [item for item in (_by_id(view), _by_history(view)) if item]
    return max(found, key=lambda item: item.gain, default=None)


def _by_id(view: View) -> Found | None:
    """A bias on one id moves its log-odds by the bias, at whatever probability it had."""
    ids, place, counts = np.unique(view.observed.token, return_inverse=True, return_counts=True)
    if len(ids) < 8:
        return None
    place = place.ravel()
    x, y = (np.minimum(values, -1e-9) for values in (view.x, view.y))
    moved = _log_odds(y) - _log_odds(x)
    doubt = view.floor.scale / np.minimum(-np.expm1(x), -np.expm1(y))
    telling = (x < SURE) & (y < SURE)
    counts = np.bincount(place[telling], minlength=len(ids))
    best = None
    for sign in (1.0, -1.0):
        far = telling & (sign * moved > np.maximum(4.0 * doubt, 0.02))
        if item := _of_ids(view, place, ids, counts, moved, far, telling, sign):
            best = item if best is None or item.gain > best.gain else best
    return best


def _log_odds(logprob: np.ndarray) -> np.ndarray:
    odds: np.ndarray = logprob - np.log(-np.expm1(logprob))
    return odds


def _of_ids(
    view: View,
    place: np.ndarray,
    ids: np.ndarray,
    counts: np.ndarray,
    moved: np.ndarray,
    far: np.ndarray,
    telling: np.ndarray,
    sign: float,
) -> Found | None:
    hits = np.bincount(place[far], minlength=len(ids))
    rate = float(np.median(hits[counts > 0] / counts[counts > 0])) if (counts > 0).any() else 1.0
    pure = (hits >= PURE * counts) & (counts >= 2)
    sums = np.bincount(place[telling], weights=moved[telling], minlength=len(ids))
    level = np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)
    amount = float(np.median(np.repeat(level[pure], counts[pure]))) if pure.any() else 0.0
    chosen = pure & (sign * level > 0.5 * abs(amount))
    tokens = chosen[place]
    count, many = int((tokens & telling).sum()), int(chosen.sum())
    if count < 6 or many > max(3.0, FEW * len(ids)) or count > MOST * view.tokens or rate > 0.5:
        return None
    amount = float(np.median(moved[tokens & telling]))
    wide = float(np.median(np.abs(moved[tokens & telling] - amount)))
    hot = view.hot & ~tokens
    opposite = float(np.mean(np.sign(view.d[hot]) == -sign)) if hot.any() else 1.0
    drifting = float(hot.sum()) / max(1, int((~tokens).sum()))
    if wide > UNEVEN * abs(amount) or (drifting > 0.1 and opposite < 0.85):
        return None
    left = view.d.copy()
    odds = np.clip(_log_odds(np.minimum(view.x[tokens], -1e-9)) + amount, -700, 700)
    left[tokens] = view.y[tokens] + np.logaddexp(0.0, -odds)
    normaliser = ~tokens & (np.sign(view.d) == -sign) & (opposite >= 0.85)
    left[normaliser] = np.sign(left[normaliser]) * np.minimum(view.size[normaliser], view.floor.scale[normaliser])
    before, after = view.z[tokens], np.abs(left[tokens]) / view.floor.scale[tokens]
    wider = max(spread(after), 1.0)
    nats = float((2.0 * (np.log1p(before**2 / 3.0) - np.log1p((after / wider) ** 2 / 3.0)) - np.log(wider)).sum())
    nats += float(np.maximum(view.score[normaliser], 0.0).sum()) + np.log(2.0) * float(
        (normaliser & (view.z > 2.5)).sum()
    )
    nats -= many * np.log(len(ids)) + 8.0
    if nats < LEAST_NATS:
        return None
    return Found(
        kind="processed",
        gain=nats,
        left=left,
        rough=True,
        evidence={
            "token_ids": [int(i) for i in ids[chosen][:16]],
            "ids_moved": many,
            "ids_seen": len(ids),
            "tokens_moved": count,
            "log_odds_moved": amount,
            "median_deviation": wide,
            "others_drifting": drifting,
            "others_of_opposite_sign": opposite,
        },
    )


def _by_history(view: View) -> Found | None:
    if np.mean(view.hot) < 0.03:
        return None
    seen = _seen_before(view)
    again, first = view.d[seen], view.d[~seen]
    if len(again) < 16 or len(first) < 16:
        return None
    hot_again, hot_first = view.hot[seen], view.hot[~seen]
    sign = float(np.sign(np.median(again[hot_again]))) if hot_again.any() else 0.0
    down = float(np.mean(np.sign(again[hot_again]) == sign)) if hot_again.any() else 0.0
    up = float(np.mean(np.sign(first[hot_first]) == -sign)) if hot_first.sum() >= 4 else 1.0
    if not sign or hot_again.sum() < 12 or down < 0.8 or up < 0.8:
        return None
    rate_again, rate_first = float(hot_again.mean()), float(hot_first.mean())
    signed = hot_first.sum() >= 8 and up >= 0.8
    if not signed and rate_again < REPEATED * rate_first + 0.05:
        return None
    left = view.d.copy()
    keep = np.where(seen, np.sign(view.d) == sign, np.sign(view.d) == -sign)
    left[keep] = np.sign(left[keep]) * np.minimum(view.size[keep], view.floor.scale[keep])
    nats = float(view.score[keep & view.hot].sum()) + 0.69 * float((keep & view.hot).sum()) - 12.0
    if nats < LEAST_NATS:
        return None
    return Found(
        kind="processed",
        gain=nats,
        left=left,
        confidence="medium",
        evidence={
            "tokens_seen_before": int(seen.sum()),
            "drifting_if_seen_before": rate_again,
            "drifting_if_new": rate_first,
            "same_sign_if_seen_before": down,
            "opposite_sign_if_new": up,
            "median_shift": float(np.median(again[hot_again])),
        },
    )


def _seen_before(view: View) -> np.ndarray:
    """(N,) bool: the row's response held this id at an earlier place."""
    order = np.lexsort((np.arange(view.tokens), view.observed.token, view.observed.row))
    token, row = view.observed.token[order], view.observed.row[order]
    again = np.zeros(view.tokens, dtype=bool)
    again[order[1:]] = (token[1:] == token[:-1]) & (row[1:] == row[:-1])
    return again
