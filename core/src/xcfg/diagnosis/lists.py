"""The likeliest tokens of both sides, matched by id: how one side's logits depend on the other's."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from xcfg.diagnosis.view import View

PLACES = 4000
"""Places that are matched, evenly spaced: a list of K is held against one of K."""


@frozen(kw_only=True, eq=False)
class Matched:
    """``x`` and ``y`` (P, K) logprobs of the same K tokens, rollout's likeliest first; NaN where training has none.

    ``place`` (P,) are the places among the N tokens.
    """

    place: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Differences (M,) to the likeliest token on both sides, where a normaliser cancels, and the row of each."""
        a, b = (values[:, 1:] - values[:, :1] for values in (self.x, self.y))
        ok = np.isfinite(a) & np.isfinite(b)
        return a[ok], b[ok], np.nonzero(ok)[0]


def matched(view: View) -> Matched | None:
    """Both sides' lists at some places; None where a side has none, or they have next to no token in common."""
    left, right = view.observed.rollout.top, view.observed.training.top
    if left is None or right is None or not view.tokens:
        return None
    place = np.arange(0, view.tokens, max(1, view.tokens // PLACES))
    ids, other = left.token[place], right.token[place]
    same = (ids[:, :, None] == other[:, None, :]) & (ids[:, :, None] >= 0)
    column = same.argmax(axis=2)
    y = np.where(same.any(axis=2), np.take_along_axis(right.logprob[place], column, axis=1), np.nan)
    x = np.where(ids >= 0, left.logprob[place], np.nan)
    if np.isfinite(x[:, 1:] + y[:, 1:] + y[:, :1]).sum() < 32:
        return None
    return Matched(place=place, x=x, y=y)
