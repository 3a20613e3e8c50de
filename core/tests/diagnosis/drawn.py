"""Tokens drawn from small random distributions, and faults applied to their true logits."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from xcfg.diagnosis.observed import Observed, Rows, Side, Stated, Top

NOISE = {"float32": 4e-6, "float16": 1e-3, "bfloat16": 1e-2}


def log_softmax(logits: np.ndarray) -> np.ndarray:
    top = logits.max(axis=1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))


@frozen(kw_only=True, eq=False)
class Text:
    """Rows of tokens with the logits (N, V) that they were drawn from."""

    lengths: np.ndarray
    prompts: np.ndarray
    logits: np.ndarray
    token: np.ndarray
    dtype: str

    @property
    def tokens(self) -> int:
        return len(self.token)

    @property
    def row(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def position(self) -> np.ndarray:
        return np.arange(self.tokens) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)

    def chosen(self, logprobs: np.ndarray) -> np.ndarray:
        return logprobs[np.arange(self.tokens), self.token]

    @property
    def raw(self) -> np.ndarray:
        return self.chosen(log_softmax(self.logits))


def text(
    rng: np.random.Generator, rows: int = 24, tokens: int = 96, vocabulary: int = 80, dtype: str = "bfloat16"
) -> Text:
    """About ``tokens`` a row; half of the places are nearly certain, the others spread over some tokens."""
    lengths = rng.integers(max(1, int(0.6 * tokens)), int(1.4 * tokens) + 1, rows)
    n = int(lengths.sum())
    sharp = np.exp(rng.normal(0.6, 0.5, (n, 1)))
    common = rng.normal(0, 1.0, (1, vocabulary))
    logits = sharp * (rng.normal(0, 1.0, (n, vocabulary)) + common)
    sure = rng.random(n) < 0.45
    logits[np.flatnonzero(sure), rng.integers(0, vocabulary, sure.sum())] += rng.uniform(8, 16, sure.sum())
    p = np.exp(log_softmax(logits))
    token = (np.cumsum(p, axis=1) < rng.random((n, 1)) * p.sum(axis=1, keepdims=True)).sum(axis=1)
    return Text(
        lengths=lengths,
        prompts=rng.integers(5, 60, rows),
        logits=logits,
        token=np.minimum(token, vocabulary - 1),
        dtype=dtype,
    )


def noise(rng: np.random.Generator, text: Text, logprob: np.ndarray) -> np.ndarray:
    """Heavy-tailed rounding that grows with abs(logp); a probability stays at most 1."""
    scale = NOISE[text.dtype] / np.sqrt(2) * rng.uniform(0.5, 1.0)
    drawn = scale * (1.0 + 0.1 * np.abs(logprob)) * rng.standard_t(4, len(logprob)) / np.sqrt(2)
    return np.minimum(logprob + drawn * np.minimum(1.0, 0.05 + np.abs(logprob)), 0.0)


def observed(
    text: Text,
    rng: np.random.Generator,
    rollout: np.ndarray,
    training: np.ndarray,
    *,
    noisy: bool = True,
    **rows: object,
) -> Observed:
    sides = [noise(rng, text, values) if noisy else values for values in (rollout, training)]
    return Observed(
        rows=Rows(length=text.lengths, prompt_length=text.prompts, response_length=text.lengths, **rows),
        position=text.position,
        token=text.token,
        rollout=Side(logprob=sides[0], stated=Stated(dtype=text.dtype)),
        training=Side(logprob=sides[1], stated=Stated(dtype=text.dtype)),
    )


def listed(
    text: Text, value: Observed, rollout: np.ndarray, training: np.ndarray, k: int = 8, *, lse: bool = False
) -> Observed:
    """The same with the K likeliest tokens of both sides' logits, and their log-sum-exps."""
    sides = {}
    for name, logits in (("rollout", rollout), ("training", training)):
        logprobs = log_softmax(logits)
        order = np.argsort(-logprobs, axis=1)[:, :k]
        top = Top(token=order, logprob=np.take_along_axis(logprobs, order, axis=1))
        total = (logits - logprobs)[:, 0] if lse else None
        sides[name] = evolve(getattr(value, name), top=top, lse=total)
    return evolve(value, **sides)
