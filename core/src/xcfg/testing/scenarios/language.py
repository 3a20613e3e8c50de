"""A small synthetic language model: what turns hidden states into logits, at a dtype and in a summation order.

It has what matters to logprobs in the real thing: a residual block whose product is split over shards, as tensor
parallelism splits it, with partial sums rounded before they are added; a head; frequent and rare tokens; states that
leave no doubt about the next token and states that leave much.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from xcfg.testing.scenarios.precision import rounded

HIDDEN = 48
WIDE = 96
DEPTH = 3
"""The residual block is passed this often, as so many layers with tied weights."""
CERTAIN, CHOICE = 0.4, 0.38
"""Shares of places whose state points at one token, and at a few; the others point weakly at a few."""
RIVALS = 4
AGAINST = 2.5
"""How far two halves of the block work against each other: what adds up over many layers of a real model, in three."""


@frozen(kw_only=True, eq=False)
class Weights:
    """``up`` (H, M), ``down`` (M, H), ``head`` (H, V), ``bias`` (V,): float32, values of the checkpoint's dtype."""

    up: np.ndarray
    down: np.ndarray
    head: np.ndarray
    bias: np.ndarray


@frozen(kw_only=True)
class How:
    """How one side computes: ``dtype`` of activations, ``head`` the dtype of its logits, ``shards`` partial sums."""

    dtype: str = "float32"
    head: str = "float32"
    shards: int = 1


def draw_weights(generator: np.random.Generator, vocabulary: int, dtype: str) -> Weights:
    """The parameters of one checkpoint, kept in ``dtype``. Token 0 is the most frequent one."""

    def normal(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape, dtype=np.float32)

    half = normal(HIDDEN, WIDE // 2) * np.float32(HIDDEN**-0.5)
    against = normal(WIDE // 2, HIDDEN) * np.float32(AGAINST * WIDE**-0.5)
    down = normal(WIDE, HIDDEN) * np.float32(0.35 * WIDE**-0.5) + np.concatenate([against, -against])
    head = normal(HIDDEN, vocabulary)
    head /= np.linalg.norm(head, axis=0)
    bias = -0.7 * np.log(np.arange(1, vocabulary + 1)) + 3
    return Weights(
        up=rounded(np.concatenate([half, half], axis=1), dtype),
        down=rounded(down, dtype),
        head=rounded(head, dtype),
        bias=rounded(bias.astype(np.float32), dtype),
    )


def draw_states(generator: np.random.Generator, weights: Weights, count: int) -> np.ndarray:
    """(N, H) float32 states: each leans on one token or on a few, frequent tokens more often, by more or less."""
    frequency = np.cumsum(1.0 / np.arange(2, weights.head.shape[1] + 2))
    token = np.searchsorted(frequency, generator.random((RIVALS, count)) * frequency[-1], side="right")
    sort = generator.random(count)
    sure, several = sort < CERTAIN, (sort >= CERTAIN) & (sort < CERTAIN + CHOICE)
    lean = np.where(sure, generator.uniform(11, 24, count), generator.uniform(2, 9, count))
    lean = np.where(several, generator.uniform(8, 17, count), lean)
    share = np.where(sure, 0, generator.uniform(0.5, 1, (RIVALS, count)))
    share[0] = 1
    states = 0.5 * generator.standard_normal((count, HIDDEN), dtype=np.float32)
    for rival, part in zip(token, share, strict=True):
        states += weights.head.T[rival] * (lean * part)[:, None].astype(np.float32)
    return states


def logits_of(weights: Weights, states: np.ndarray, how: How) -> np.ndarray:
    """(N, V) float32 logits of ``states`` (N, H), rounded where a model run in ``how.dtype`` rounds."""
    held = rounded(states, how.dtype)
    step = WIDE // how.shards
    for _ in range(DEPTH):
        wide = rounded(np.maximum(held @ weights.up, 0), how.dtype)
        total = wide[:, :0] @ weights.down[:0]
        for start in range(0, WIDE, step):
            total = rounded(
                total + rounded(wide[:, start : start + step] @ weights.down[start : start + step], how.dtype),
                how.dtype,
            )
        held = rounded(held + total, how.dtype)
    half = HIDDEN // how.shards
    logits = held[:, :half] @ weights.head[:half]
    if half < HIDDEN:
        logits += held[:, half:] @ weights.head[half:]
    logits += weights.bias
    return rounded(logits, how.head)


def log_softmax_at(logits: np.ndarray, token: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """((N,) logprob of ``token``, (N,) log-sum-exp) in float32 arithmetic, as engines do it, held in float64."""
    most = logits.max(axis=1)
    below = logits - most[:, None]
    chosen = below[np.arange(len(token)), token]
    total = np.log(np.exp(below, out=below).sum(axis=1))
    return (chosen - total).astype(np.float64), (most + total).astype(np.float64)


def sampled(logits: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """(N,) int64 tokens drawn from the softmax of ``logits`` (N, V); minus infinity is never drawn."""
    weight = np.exp(logits - logits.max(axis=1, keepdims=True))
    cumulative = np.cumsum(weight, axis=1, dtype=np.float64)
    bar = generator.random(len(logits)) * cumulative[:, -1]
    token: np.ndarray = (cumulative <= bar[:, None]).sum(axis=1)
    return token
