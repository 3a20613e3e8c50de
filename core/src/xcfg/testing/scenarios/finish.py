"""From a draft to what is recorded: both passes, the drawn tokens, and the metadata that somebody kept."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from attrs import evolve

from xcfg.diagnosis.observed import Observed, Rows, Side, Stated, Top
from xcfg.testing.scenarios.draft import Draft, Half
from xcfg.testing.scenarios.language import log_softmax_at, logits_of, sampled

DROPPABLE = ("prompt_length", "response_length", "rollout_rank", "train_rank", "padding", "batch", "step")


def finish(draft: Draft, keep: Collection[str]) -> Observed:
    """Score both sides. Metadata named in ``keep`` stays; any other may be missing, alone or all at once."""
    draft.rollout.raw = drawn_from = logits_of(draft.rollout.weights, draft.rollout.states, draft.rollout.how)
    for transform in draft.sampler:
        drawn_from = transform(drawn_from)
    draft.token = sampled(drawn_from, draft.generator)
    draft.training.raw = logits_of(draft.training.weights, draft.training.states, draft.training.how)
    for half in (draft.rollout, draft.training):
        half.logits = half.raw
        for transform in half.transforms:
            half.logits = transform(half.logits)
        half.logprob, half.lse = log_softmax_at(half.logits, draft.token)
    recorded = [half.logprob for half in (draft.rollout, draft.training)]
    for index, half in enumerate((draft.rollout, draft.training)):
        for after in half.after:
            recorded[index] = after(recorded[index])
    known = draft.generator.random() < 0.85 or "dtype" in keep
    extras = draft.generator.random(2) < 0.3
    top = int(draft.generator.choice([5, 20]))
    sides = [
        _side(half, logprob, draft.shape.dtype if known else "", extras=extras, top=top)
        for half, logprob in zip((draft.rollout, draft.training), recorded, strict=True)
    ]
    return Observed(
        rows=_thinned(draft, keep),
        position=draft.position,
        token=draft.token,
        rollout=sides[0],
        training=sides[1],
    )


def _side(half: Half, logprob: np.ndarray, dtype: str, *, extras: np.ndarray, top: int) -> Side:
    """What is recorded of one side. One whose logprobs were changed after the softmax has them alone."""
    stated = Stated(dtype=dtype, stored=half.stored if dtype else "")
    if half.after:
        return Side(logprob=logprob, stated=stated)
    return Side(
        logprob=logprob,
        lse=half.lse if extras[0] else None,
        top=_top(half, top) if extras[1] else None,
        stated=stated,
    )


def _top(half: Half, count: int) -> Top:
    """The ``count`` likeliest tokens of each place, likeliest first; places off the support hold -1 and NaN."""
    near = np.argpartition(half.logits, -count, axis=1)[:, -count:]
    values = np.take_along_axis(half.logits, near, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    token = np.take_along_axis(near, order, axis=1)
    logprob = np.take_along_axis(values, order, axis=1).astype(np.float64) - half.lse[:, None]
    gone = np.isneginf(logprob)
    return Top(token=np.where(gone, -1, token), logprob=np.where(gone, np.nan, logprob))


def _thinned(draft: Draft, keep: Collection[str]) -> Rows:
    """The rows with half of the instances' metadata whole, a fifth without any that may go, the rest in between."""
    how = draft.generator.random()
    chance = 0.0 if how < 0.5 else 1.0 if how < 0.7 else 0.5
    lost = draft.generator.random(len(DROPPABLE)) < chance
    gone: dict[str, Any] = {name: None for name, left in zip(DROPPABLE, lost, strict=True) if left and name not in keep}
    return evolve(draft.rows, **gone)
