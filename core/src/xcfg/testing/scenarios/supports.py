"""Logprobs renormalised on the tokens that the sampler kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.scenario import scenario

Keep = Callable[[np.ndarray], np.ndarray]
"""Logits (N, V) to the bool (N, V) of the tokens that are kept."""


def top_p(share: float) -> Keep:
    """The fewest likeliest tokens that hold ``share`` of the probability; tokens as likely as the last stay too."""

    def kept(logits: np.ndarray) -> np.ndarray:
        weight = np.exp(logits - logits.max(axis=1, keepdims=True))
        ranked = -np.sort(-weight, axis=1)
        before = np.cumsum(ranked, axis=1) - ranked
        last = (before < share * ranked.sum(axis=1, keepdims=True)).sum(axis=1) - 1
        result: np.ndarray = weight >= ranked[np.arange(len(last)), last][:, None]
        return result

    return kept


def top_k(count: int) -> Keep:
    """The ``count`` likeliest tokens."""

    def kept(logits: np.ndarray) -> np.ndarray:
        result: np.ndarray = logits >= np.partition(logits, -count, axis=1)[:, -count][:, None]
        return result

    return kept


def min_p(share: float) -> Keep:
    """The tokens at least ``share`` as likely as the likeliest."""

    def kept(logits: np.ndarray) -> np.ndarray:
        result: np.ndarray = logits >= logits.max(axis=1, keepdims=True) + np.float32(np.log(share))
        return result

    return kept


def renormalised(draft: Draft, keep: Keep, *, on_rollout: bool = True) -> None:
    """Draw from the kept tokens; the rollout, or else the training side, divides by their mass."""
    draft.sampler.append(lambda logits: np.where(keep(logits), logits, -np.inf))
    half = draft.rollout if on_rollout else draft.training
    half.transforms.append(lambda logits: np.where(keep(draft.rollout.raw), logits, -np.inf))
    draft.facts.update(keep=keep, on_rollout=on_rollout)


@scenario("kept-mass-top-p", "kept-mass", cause=("S2",))
def kept_top_p(draft: Draft) -> None:
    """The mean ratio is below 1 by what top-p cuts off: the engine logs probabilities of the cut distribution."""
    low = {"float32": 0.995, "float16": 0.98, "bfloat16": 0.95}[draft.shape.dtype]
    renormalised(draft, top_p(draft.pick(0.7, 0.8, 0.9, low)))


@scenario("kept-mass-top-k", "kept-mass", cause=("S2",))
def kept_top_k(draft: Draft) -> None:
    """The same with top-k, which cuts nothing where the model is certain."""
    renormalised(draft, top_k(int(draft.pick(3, 5, 10))))


@scenario("kept-mass-min-p", "kept-mass", cause=("S2",))
def kept_min_p(draft: Draft) -> None:
    """The same with min-p, which cuts most where the likeliest token is very likely."""
    renormalised(draft, min_p(draft.pick(0.05, 0.1, 0.2)))


@scenario("kept-mass-training", "kept-mass")
def kept_training(draft: Draft) -> None:
    """The trainer replays the engine's support mask, and the engine logs raw logprobs: all ratios above 1."""
    renormalised(draft, top_p(draft.pick(0.7, 0.8, 0.9)), on_rollout=False)
