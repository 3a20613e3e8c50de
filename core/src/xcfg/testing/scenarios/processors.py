"""Logits that a processor has changed on one side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.magnitude import nats
from xcfg.testing.scenarios.scenario import scenario
from xcfg.testing.scenarios.supports import min_p

FREQUENT = 12
"""Ids below this are drawn often enough that a change of theirs shows."""


def _ids(draft: Draft, count: int) -> np.ndarray:
    ids = draft.generator.permutation(FREQUENT)[:count]
    draft.facts["ids"] = ids
    return ids


def _adding(ids: np.ndarray, amount: np.float32) -> Callable[[np.ndarray], np.ndarray]:
    def biased(logits: np.ndarray) -> np.ndarray:
        result = logits.copy()
        result[:, ids] += amount
        return result

    return biased


@scenario("processed-bias", "processed", cause=("S3",))
def bias(draft: Draft) -> None:
    """A few ids are off by much, all others by little: a logit bias is in the engine's logprobs."""
    ids = _ids(draft, int(draft.pick(1, 2, 3)))
    amount = np.float32(draft.pick(-1, 1) * max(0.3, nats(draft, 20, 4.0)))
    draft.facts["amount"] = amount
    biased = _adding(ids, amount)
    draft.sampler.append(biased)
    draft.rollout.transforms.append(biased)


@scenario("processed-training", "processed", cause=("S3",))
def bias_training(draft: Draft) -> None:
    """The same the other way round: the trainer applies the bias that it was told of, the engine logs raw logits."""
    ids = _ids(draft, 2)
    amount = np.float32(draft.pick(-2, -1, 1, 2))
    draft.facts["amount"] = amount
    biased = _adding(ids, amount)
    draft.sampler.append(biased)
    draft.training.transforms.append(biased)


@scenario("processed-repetition", "processed", accept=("unknown",))
def repetition(draft: Draft) -> None:
    """Tokens that came before in their row are less likely on one side: a repetition penalty.

    Which tokens those are is another set in each row, so that some would not name it.
    """
    penalty = np.float32(draft.pick(1.1, 1.2, 1.3))

    def penalised(logits: np.ndarray) -> np.ndarray:
        seen = seen_before(draft.row, draft.token, draft.shape.vocabulary)
        lower = np.where(logits > 0, logits / penalty, logits * penalty)
        return np.where(seen, lower, logits)

    draft.rollout.transforms.append(penalised)


def seen_before(row: np.ndarray, token: np.ndarray, vocabulary: int) -> np.ndarray:
    """(N, V) bool: ids that occur earlier in the token's row."""
    seen = np.zeros((len(token), vocabulary), bool)
    for start in np.flatnonzero(np.diff(row, prepend=-1)):
        end = np.searchsorted(row, row[start], side="right")
        if end - start > 1:
            here = seen[start + 1 : end]
            here[np.arange(end - start - 1), token[start : end - 1]] = True
            np.logical_or.accumulate(here, axis=0, out=here)
    return seen


@scenario("processed-banned", "processed", accept=("kept-mass",))
def banned(draft: Draft) -> None:
    """Ids that must not be drawn are cut out on one side, so that all others gain: a list of banned tokens.

    The ratio is the mass that is kept, by another road; who says so is right too.
    """
    ids = _ids(draft, int(draft.pick(1, 2, 4)))

    def cut(logits: np.ndarray) -> np.ndarray:
        result = logits.copy()
        result[:, ids] = -np.inf
        return result

    draft.sampler.append(cut)
    draft.rollout.transforms.append(cut)


@scenario("processed-order", "processed", cause=("S4",), accept=("kept-mass", "unknown", "temperature"))
def order(draft: Draft) -> None:
    """Two releases apply the bias before and after the floor of min-p, and differ where the support does.

    Only the normaliser differs, on a part of the tokens: a kept mass that varies, or nothing with a name.
    """
    ids, keep = _ids(draft, 3), min_p(0.1)
    amount = np.float32(draft.pick(2, 3))
    biased = _adding(ids, amount)

    def before(logits: np.ndarray) -> np.ndarray:
        return np.where(keep(biased(draft.rollout.raw)), biased(logits), -np.inf)

    def after(logits: np.ndarray) -> np.ndarray:
        return np.where(keep(draft.rollout.raw), biased(logits), -np.inf)

    def both(logits: np.ndarray) -> np.ndarray:
        return np.where(keep(logits) & keep(biased(logits)), biased(logits), -np.inf)

    draft.sampler.append(both)
    draft.rollout.transforms.append(after)
    draft.training.transforms.append(before)
