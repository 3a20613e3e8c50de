"""Clean controls: nothing is wrong. Whoever names a fault here cries wolf."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.language import logits_of
from xcfg.testing.scenarios.layout import Wants
from xcfg.testing.scenarios.scenario import scenario


@scenario("clean", "floor", cause=("N1",))
def plain(draft: Draft) -> None:
    """Two sides of one dtype that sum in other orders: about as far apart as either is from float32."""


@scenario("clean-head", "floor")
def head(draft: Draft) -> None:
    """The trainer keeps its logits in float32, the engine in the dtype of the model: a common default."""
    draft.rollout.how = evolve(draft.rollout.how, head=draft.shape.dtype)
    draft.training.how = evolve(draft.training.how, head="float32")


@scenario("clean-steps", "floor", wants=Wants(steps=5, ranks=4))
def long_run(draft: Draft) -> None:
    """Many steps and ranks, all as they should be."""


@scenario("clean-turns", "floor", wants=Wants(turns=True, packed=False))
def turns(draft: Draft) -> None:
    """Conversations with masked answers of tools in between, left-padded."""


@scenario("clean-uncertain", "floor")
def uncertain(draft: Draft) -> None:
    """A base model early in training: hardly a token is certain, so that every one of them shows noise."""
    flat = np.float32(draft.between(0.45, 0.7))
    for half in (draft.rollout, draft.training):
        half.states = half.states * flat


@scenario("clean-batches", "floor", cause=("R1", "A4"))
def batches(draft: Draft) -> None:
    """Kernels are chosen by the shape of a batch: every batch sums in an order of its own, all within the floor."""
    other = evolve(draft.training.how, shards={1: 2, 2: 4, 4: 1}[draft.training.how.shards])
    odd = (draft.column("batch") % 2 == 1)[draft.row]

    def mixed(logits: np.ndarray) -> np.ndarray:
        swapped = logits_of(draft.training.weights, draft.training.states[odd], other)
        result = logits.copy()
        result[odd] = swapped
        return result

    if other.shards != draft.rollout.how.shards:
        draft.training.transforms.append(mixed)


@scenario("clean-log-of-softmax", "floor", cause=("O2",))
def log_of_softmax(draft: Draft) -> None:
    """One side takes the log of a float32 softmax, the other a log-softmax: the last digits differ on every token."""
    half = draft.either()

    def again(logprob: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.log(np.exp(logprob).astype(np.float32).astype(np.float64))
        return result

    half.after.append(again)


@scenario("clean-sampled-warm", "floor")
def warm(draft: Draft) -> None:
    """Tokens drawn at another temperature, raw logprobs on both sides: more unlikely tokens, no fault."""
    temperature = np.float32(draft.pick(0.6, 0.8, 1.2, 1.5))
    draft.sampler.append(lambda logits: logits / temperature)


@scenario("clean-same-kernel", "floor")
def same_kernel(draft: Draft) -> None:
    """Both sides run the very same kernels: most differences are exactly zero."""
    draft.training.how = evolve(draft.rollout.how)


@scenario("clean-cached-prefix", "floor", wants=Wants(turns=False))
def cached_prefix(draft: Draft) -> None:
    """Answers forced word for word by the prompt: the first tokens of each row are all but certain."""
    start = draft.position < int(draft.pick(4, 16, 32))
    for half in (draft.rollout, draft.training):
        half.states = np.where(start[:, None], half.states * np.float32(1.5), half.states)
