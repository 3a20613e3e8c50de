"""Logprobs that are not what they are said to be: missing, of another step, or of another path."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.language import log_softmax_at, logits_of
from xcfg.testing.scenarios.layout import Wants
from xcfg.testing.scenarios.scenario import scenario


@scenario("padded-zero-scattered", "padded-zero", cause=("O3",))
def scattered(draft: Draft) -> None:
    """Here and there a logprob is exactly 0.0: values the engine did not return, padded with probability 1."""
    gone = draft.generator.random(len(draft.row)) < draft.between(0.03, 0.4)
    draft.facts["gone"] = gone
    draft.either().after.append(lambda logprob: np.where(gone, 0.0, logprob))


@scenario("padded-zero-unlikely", "padded-zero", cause=("O3",))
def unlikely(draft: Draft) -> None:
    """The same, where the token was not among the likeliest few that the engine returns."""
    bar = draft.pick(-1.0, -2.0, -3.0)
    draft.rollout.after.append(lambda logprob: np.where(logprob < bar, 0.0, logprob))


@scenario("padded-zero-runs", "padded-zero", cause=("O3",))
def runs(draft: Draft) -> None:
    """The same in runs of tokens: lost chunks of a streamed answer."""
    start = draft.generator.random(len(draft.row)) < 0.01
    start[draft.generator.integers(len(start), size=2)] = True
    gone = np.convolve(start, np.ones(int(draft.pick(4, 8, 16))))[: len(start)] > 0
    draft.facts["gone"] = gone
    draft.either().after.append(lambda logprob: np.where(gone, 0.0, logprob))


@scenario("padded-zero-first", "padded-zero", accept=("boundary-start",))
def first(draft: Draft) -> None:
    """The same on the first token of each row, for which the engine has none: an edge, and a padded value."""
    gone = np.diff(draft.row, prepend=-1) != 0
    draft.facts["gone"] = gone
    draft.either().after.append(lambda logprob: np.where(gone, 0.0, logprob))


@scenario("padded-zero-rows", "padded-zero", accept=("sequences",))
def whole_rows(draft: Draft) -> None:
    """The same for some rows, all of each: requests that came back without logprobs."""
    hit = draft.generator.random(draft.shape.rows) < 0.2
    hit[draft.generator.integers(draft.shape.rows)] = True
    draft.facts["gone"] = hit[draft.row]
    draft.either().after.append(lambda logprob: np.where(hit[draft.row], 0.0, logprob))


def _repeat(draft: Draft, source: np.ndarray) -> None:
    """Row r holds the logprobs of row ``source[r]``, at least as long."""
    start = np.cumsum(draft.rows.length) - draft.rows.length
    taken = start[source][draft.row] + np.arange(len(draft.row)) - start[draft.row]
    draft.facts["source"] = source
    draft.either().after.append(lambda logprob: logprob[taken])


@scenario("duplicated-step-last", "duplicated-step", keep=("step",), wants=Wants(steps=3, equal=True))
def last_step(draft: Draft) -> None:
    """A step's rows hold the logprobs of the step before: a buffer that nobody filled again."""
    step = draft.column("step")
    steps = np.unique(step)
    number = int(draft.generator.integers(1, len(steps)))
    here, before = np.flatnonzero(step == steps[number]), np.flatnonzero(step == steps[number - 1])
    source = np.arange(draft.shape.rows)
    source[here] = np.resize(before, len(here))
    _repeat(draft, source)


@scenario("duplicated-step-rows", "duplicated-step")
def some_rows(draft: Draft) -> None:
    """Some rows repeat what an earlier row has on that side: an answer from the cache of a proxy."""
    length, source = draft.rows.length, np.arange(draft.shape.rows)
    fits = [np.flatnonzero(length[:row] >= length[row]) for row in source]
    able = [row for row in source if len(fits[row])]
    for row in draft.generator.permutation(able)[: max(1, len(able) // int(draft.pick(2, 4, 8)))]:
        source[row] = draft.generator.choice(fits[row])
    _repeat(draft, _own(source))


def _own(source: np.ndarray) -> np.ndarray:
    """``source`` where the row named is itself its own: a copy of a copy is a copy of the first."""
    while (source[source] != source).any():
        source = source[source]
    return source


@scenario("scoring-path-head", "scoring-path", cause=("O1",))
def wrong_head(draft: Draft) -> None:
    """The engine generates well, and its logprobs are wrong by nats on every token: the head's adapter is dropped."""
    half, shape = draft.either(), draft.rollout.weights.head.shape
    delta = draft.generator.standard_normal(shape, dtype=np.float32) / np.float32(shape[0] ** 0.5)
    head = half.weights.head * np.float32(draft.pick(0.0, 0.3)) + delta
    other = evolve(half.weights, head=head)
    half.transforms.append(lambda logits: logits_of(other, half.states, half.how))


@scenario("scoring-path-ids", "scoring-path")
def wrong_ids(draft: Draft) -> None:
    """The same: one side's scored ids are those of another tokenizer's release, all moved by an added token."""
    half, by = draft.either(), int(draft.pick(1, 2, 7))
    half.after.append(lambda _: log_softmax_at(half.logits, (draft.token + by) % draft.shape.vocabulary)[0])


@scenario("scoring-path-self", "scoring-path")
def own_logits(draft: Draft) -> None:
    """The same: each token is scored by the logits that follow it, so that no shift of the logprobs mends it."""
    half, by = draft.either(), int(draft.pick(1, -1))
    half.after.append(lambda _: log_softmax_at(np.roll(half.logits, by, axis=0), draft.token)[0])
