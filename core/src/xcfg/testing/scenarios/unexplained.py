"""Drift above the floor that no recorded number explains: the honest answer is that one does not know."""

from __future__ import annotations

import numpy as np

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.language import HIDDEN
from xcfg.testing.scenarios.magnitude import disturbance
from xcfg.testing.scenarios.scenario import scenario


@scenario("unknown-experts", "unknown", cause=("Q1", "M1", "A5"), keep=("dtype",), accept=("stale-weights",))
def experts(draft: Draft) -> None:
    """Some tokens, anywhere, drift by a lot: their experts were chosen otherwise.

    Where nothing but chance sets them apart, it could be weights.
    """
    hit = draft.generator.random(len(draft.row)) < draft.pick(0.1, 0.3)
    draft.disturb(draft.training, hit, 3 * disturbance(draft))


@scenario(
    "unknown-cache-dtype", "unknown", cause=("Q2", "Q3", "C3"), keep=("dtype",), accept=("stale-weights", "length")
)
def cache_dtype(draft: Draft) -> None:
    """All tokens drift, a little more the longer the context: a key-value cache in eight bits without scales.

    Nothing in the numbers tells it from old weights, or from a length that matters.
    """
    context = draft.position + draft.column("prompt_length")[draft.row]
    share = 0.6 + 0.4 * context / context.max()
    draft.disturb(draft.rollout, share, 2 * disturbance(draft))


@scenario("unknown-fused", "unknown", cause=("A1",), keep=("dtype",), accept=("stale-weights",))
def fused(draft: Draft) -> None:
    """All tokens drift, some directions of the hidden state only: a fusion that keeps low-precision intermediates."""
    part = draft.generator.random(HIDDEN) < 0.2
    part[0] = True
    size = np.float32(3 * disturbance(draft))
    noise = 1 + size * draft.generator.standard_normal((len(draft.row), HIDDEN), dtype=np.float32) * part
    draft.training.states = draft.training.states * noise.astype(np.float32)


@scenario("unknown-outliers", "unknown", keep=("dtype",))
def outliers(draft: Draft) -> None:
    """One token in a hundred, anywhere, is off by nats in either direction: a race that corrupts single values."""
    hit = draft.generator.random(len(draft.row)) < 0.01
    hit[draft.generator.integers(len(hit), size=8)] = True
    jump = draft.generator.choice([-1, 1], len(hit)) * draft.generator.uniform(0.5, 4, len(hit)) * hit
    draft.facts["jump"] = jump
    draft.rollout.after.append(lambda logprob: np.minimum(logprob + jump, logprob * 0.1))


@scenario("unknown-ids", "unknown", keep=("dtype",), accept=("processed", "stale-weights"))
def some_ids(draft: Draft) -> None:
    """The logits of some ids are off, each by another number and not always alike: corrupt rows of the head.

    A processor that moves a few ids would look much the same.
    """
    ids = draft.generator.permutation(12)[:4]
    size = np.float32(10 * disturbance(draft))
    noise = draft.generator.standard_normal((len(draft.row), 4), dtype=np.float32) * size
    half = draft.either()

    def corrupt(logits: np.ndarray) -> np.ndarray:
        result = logits.copy()
        result[:, ids] += noise
        return result

    half.transforms.append(corrupt)
