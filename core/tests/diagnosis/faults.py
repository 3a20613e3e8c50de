"""Faults of known magnitude on drawn tokens, one function a fault. ``big`` is what the dtype's noise cannot make."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import evolve

from xcfg.diagnosis.observed import Observed

from .drawn import NOISE, Text, listed, log_softmax, observed

FAULTS: dict[str, Callable[[np.random.Generator, Text], Observed]] = {}
BIG = {"bfloat16": 1.0, "float16": 0.3, "float32": 0.05}


def fault(name: str):
    def register(function):
        FAULTS[name] = function
        return function

    return register


def metadata(rng: np.random.Generator, text: Text) -> dict[str, np.ndarray]:
    rows = len(text.lengths)
    return {
        "rollout_rank": np.arange(rows) % 4,
        "train_rank": np.arange(rows) // 2 % 3,
        "padding": np.where(rng.random(rows) < 0.5, rng.integers(1, 40, rows), 0),
        "batch": np.arange(rows) // 4,
        "step": np.arange(rows) * 6 // max(rows, 6),
    }


def other_weights(rng: np.random.Generator, text: Text, where: np.ndarray, size: np.ndarray | float) -> np.ndarray:
    """Training logprobs of weights that move every logit by a normal of this deviation, at some tokens."""
    moved = text.logits + size * rng.normal(0, 1, text.logits.shape)
    return np.where(where, text.chosen(log_softmax(moved)), text.raw)


def with_training(value: Observed, logprob: np.ndarray) -> Observed:
    return evolve(value, training=evolve(value.training, logprob=logprob))


def clean(rng: np.random.Generator, text: Text) -> Observed:
    return observed(text, rng, text.raw, text.raw, **metadata(rng, text))


def drifting(rng: np.random.Generator, text: Text, where: np.ndarray, scale: np.ndarray | float = 1.0) -> Observed:
    training = other_weights(rng, text, where, BIG[text.dtype] * scale)
    return observed(text, rng, text.raw, training, **metadata(rng, text))


def by_row(text: Text, values: np.ndarray) -> np.ndarray:
    return np.repeat(values, text.lengths)


@fault("shift")
def shifted(rng: np.random.Generator, text: Text, k: int = -1) -> Observed:
    """training[i + k] is rollout[i]."""
    rows = np.split(text.raw, np.cumsum(text.lengths)[:-1])
    training = np.concatenate([np.roll(row, k) for row in rows])
    return observed(text, rng, text.raw, training, **metadata(rng, text))


@fault("pairing")
def paired(rng: np.random.Generator, text: Text, distance: int = 3) -> Observed:
    rows = np.split(text.raw, np.cumsum(text.lengths)[:-1])
    training = np.concatenate([np.resize(rows[i - distance], len(row)) for i, row in enumerate(rows)])
    return observed(text, rng, text.raw, training, **metadata(rng, text))


@fault("duplicated-step")
def twice(rng: np.random.Generator, text: Text) -> Observed:
    value = clean(rng, text)
    rows = np.split(value.rollout.logprob, np.cumsum(text.lengths)[:-1])
    third = len(rows) // 3
    held = [np.resize(rows[i - third], len(row)) if third <= i < 2 * third else row for i, row in enumerate(rows)]
    return evolve(value, rollout=evolve(value.rollout, logprob=np.concatenate(held)))


@fault("boundary-end")
def ends(rng: np.random.Generator, text: Text) -> Observed:
    last = by_row(text, text.lengths) - 1 == text.position
    training = np.where(last, 2.0 * np.log(rng.random(text.tokens)) - 0.5, text.raw)
    return observed(text, rng, text.raw, training, **metadata(rng, text))


@fault("boundary-start")
def starts(rng: np.random.Generator, text: Text) -> Observed:
    return drifting(rng, text, text.position < 2, 2.0)


@fault("truncated")
def cut(rng: np.random.Generator, text: Text, value: float = -11.5) -> Observed:
    drawn = clean(rng, text)
    at = int(np.quantile(text.lengths, 0.2))
    return with_training(drawn, np.where(text.position >= at, value, drawn.training.logprob))


@fault("left-padding")
def padded(rng: np.random.Generator, text: Text) -> Observed:
    drawn = metadata(np.random.default_rng(5), text)
    training = other_weights(rng, text, by_row(text, drawn["padding"]) > 0, BIG[text.dtype])
    return observed(text, rng, text.raw, training, **drawn)


@fault("packed-positions")
def packed(rng: np.random.Generator, text: Text) -> Observed:
    return drifting(rng, text, by_row(text, np.arange(len(text.lengths)) % 4) > 0)


@fault("length")
def long(rng: np.random.Generator, text: Text, at: int = 70) -> Observed:
    return drifting(rng, text, text.position >= at)


@fault("stale-tail")
def tail(rng: np.random.Generator, text: Text) -> Observed:
    rows = len(text.lengths)
    start = np.where(np.arange(rows) % 3 > 0, rng.uniform(0.2, 0.8, rows) * text.lengths, 1e9)
    return drifting(rng, text, text.position >= by_row(text, start))


@fault("stale-weights")
def stale(rng: np.random.Generator, text: Text) -> Observed:
    return drifting(rng, text, np.ones(text.tokens, dtype=bool), 0.6)


@fault("steps-growth")
def growing(rng: np.random.Generator, text: Text) -> Observed:
    step = metadata(rng, text)["step"]
    return drifting(rng, text, np.ones(text.tokens, dtype=bool), by_row(text, (1 + step) / (1 + step.max()))[:, None])


@fault("temperature")
def tempered(rng: np.random.Generator, text: Text, at: float = 0.6) -> Observed:
    return observed(text, rng, text.raw, text.chosen(log_softmax(text.logits / at)), **metadata(rng, text))


@fault("temperature, lists")
def tempered_lists(rng: np.random.Generator, text: Text, at: float = 1.3) -> Observed:
    return listed(text, tempered(rng, text, at), text.logits, text.logits / at)


@fault("temperature, normalisers")
def tempered_sums(rng: np.random.Generator, text: Text, at: float = 0.8) -> Observed:
    return listed(text, tempered(rng, text, at), text.logits, text.logits / at, lse=True)


@fault("kept-mass")
def kept(rng: np.random.Generator, text: Text, top_p: float = 0.8) -> Observed:
    p = np.exp(log_softmax(text.logits))
    order = np.argsort(-p, axis=1)
    ranked = np.take_along_axis(p, order, axis=1)
    inside = np.zeros_like(p, dtype=bool)
    np.put_along_axis(inside, order, np.cumsum(ranked, axis=1) - ranked < top_p, axis=1)
    inside[np.arange(text.tokens), text.token] = True
    mass = np.log(np.where(inside, p, 0.0).sum(axis=1))
    return observed(text, rng, np.minimum(text.raw - mass, 0.0), text.raw, **metadata(rng, text))


@fault("processed")
def biased(rng: np.random.Generator, text: Text, ids: tuple[int, ...] = (3, 11), bias: float = -2.0) -> Observed:
    moved = np.zeros(text.logits.shape[1])
    common = np.argsort(-np.bincount(text.token, minlength=len(moved)))
    moved[common[list(ids)]] = bias
    return observed(text, rng, text.raw, text.chosen(log_softmax(text.logits + moved)), **metadata(rng, text))


@fault("monotone, lists")
def capped(rng: np.random.Generator, text: Text, cap: float = 5.0, *, lse: bool = False) -> Observed:
    logits = cap * np.tanh(text.logits / cap)
    drawn = observed(text, rng, text.raw, text.chosen(log_softmax(logits)), **metadata(rng, text))
    return listed(text, drawn, text.logits, logits, lse=lse)


@fault("monotone, normalisers")
def capped_sums(rng: np.random.Generator, text: Text) -> Observed:
    return capped(rng, text, 8.0, lse=True)


@fault("stale-prefix")
def prefix(rng: np.random.Generator, text: Text, block: int = 32) -> Observed:
    place = text.position + by_row(text, text.prompts)
    edge = (text.prompts // block + 1 + rng.integers(0, 2, len(text.prompts))) * block
    return drifting(rng, text, place < by_row(text, edge))


@fault("block")
def blocks(rng: np.random.Generator, text: Text, block: int = 16) -> Observed:
    place = text.position + by_row(text, text.prompts)
    return drifting(rng, text, rng.random(100_000)[(text.row * 100 + place // block) % 100_000] < 0.3)


@fault("block, places")
def block_edges(rng: np.random.Generator, text: Text, block: int = 16) -> Observed:
    return drifting(rng, text, (text.position + by_row(text, text.prompts)) % block == 0)


@fault("constant-offset")
def offset(rng: np.random.Generator, text: Text, by: float = -0.2) -> Observed:
    drawn = clean(rng, text)
    return with_training(drawn, drawn.training.logprob + by * BIG[text.dtype])


@fault("padded-zero")
def zeros(rng: np.random.Generator, text: Text) -> Observed:
    drawn = clean(rng, text)
    return with_training(drawn, np.where(rng.random(text.tokens) < 0.05, 0.0, drawn.training.logprob))


@fault("above-zero")
def above(rng: np.random.Generator, text: Text) -> Observed:
    drawn = clean(rng, text)
    return with_training(drawn, np.where(rng.random(text.tokens) < 0.05, 0.4, drawn.training.logprob))


@fault("scoring-path")
def unrelated(rng: np.random.Generator, text: Text) -> Observed:
    logits = 0.3 * text.logits + 2.5 * rng.normal(0, 1, text.logits.shape)
    return observed(text, rng, text.raw, text.chosen(log_softmax(logits)), **metadata(rng, text))


@fault("rank")
def ranked(rng: np.random.Generator, text: Text) -> Observed:
    return drifting(rng, text, by_row(text, metadata(rng, text)["rollout_rank"]) == 1)


@fault("sequences")
def some_rows(rng: np.random.Generator, text: Text) -> Observed:
    return drifting(rng, text, np.isin(text.row, [1, 6, 7, 12]))


@fault("low-precision-storage")
def coarse(rng: np.random.Generator, text: Text) -> Observed:
    drawn = clean(rng, text)
    part, power = np.frexp(drawn.training.logprob)
    bits = 8 if text.dtype == "float32" else 4
    return with_training(drawn, np.ldexp(np.rint(part * 2.0**bits) / 2.0**bits, power))


@fault("proportional")
def scaled(rng: np.random.Generator, text: Text, by: float = 0.15) -> Observed:
    return observed(text, rng, text.raw, text.raw * (1.0 + by * BIG[text.dtype]), **metadata(rng, text))


def outliers(rng: np.random.Generator, text: Text) -> Observed:
    """Clean, but for one token in 400 that is off by 3 to 30 times the noise."""
    drawn = clean(rng, text)
    training = drawn.training.logprob.copy()
    some = rng.integers(0, text.tokens, max(1, text.tokens // 400))
    training[some] -= rng.uniform(3, 30, len(some)) * NOISE[text.dtype]
    return with_training(drawn, training)


def rows_of_one_noise(rng: np.random.Generator, text: Text) -> Observed:
    """Clean, with noise of another width and mean in each row."""
    drawn = clean(rng, text)
    width = by_row(text, np.exp(rng.normal(0, 0.4, len(text.lengths))))
    mean = by_row(text, rng.normal(0, 0.4, len(text.lengths))) * NOISE[text.dtype]
    off = (drawn.training.logprob - text.raw) * width + mean * np.minimum(1.0, np.abs(text.raw))
    return with_training(drawn, np.minimum(text.raw + off, 0.0))


CLEAN = {"noise": clean, "outliers": outliers, "rows of one noise": rows_of_one_noise}
