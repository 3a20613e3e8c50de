"""The same difference on every token, and normalisers that leave something out."""

from __future__ import annotations

import numpy as np

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.language import log_softmax_at
from xcfg.testing.scenarios.magnitude import nats
from xcfg.testing.scenarios.precision import rounded
from xcfg.testing.scenarios.scenario import scenario


@scenario("constant-offset-summed", "constant-offset")
def summed_twice(draft: Draft) -> None:
    """Every token is off by the log of the tensor-parallel degree: the normaliser is reduced once too often."""
    amount = -float(np.log(draft.pick(2, 4, 8)))
    draft.facts["amount"] = amount
    draft.either().after.append(lambda logprob: logprob + amount)


@scenario("constant-offset-small", "constant-offset")
def small_offset(draft: Draft) -> None:
    """The same with a small number, in the middle of the noise but the same on all tokens, certain ones too."""
    amount = draft.pick(-1, 1) * nats(draft, 2, 0.3)
    draft.facts["amount"] = amount
    draft.either().after.append(lambda logprob: np.minimum(logprob + amount, 0) if amount > 0.2 else logprob + amount)


@scenario("constant-offset-padding", "constant-offset", accept=("kept-mass",))
def padded_vocabulary(draft: Draft) -> None:
    """All ratios are below 1 alike: the vocabulary is padded to a multiple of 64 and the normaliser counts the padding.

    The model was trained to keep its normaliser constant, so that zero logits of the padding weigh the same everywhere.
    As a ratio of sums it is a kept mass too.
    """
    short = -draft.shape.vocabulary % 64 or 64
    level = draft.pick(1, 3, 5)
    token = np.zeros(len(draft.row), np.int64)

    def levelled(logits: np.ndarray) -> np.ndarray:
        result: np.ndarray = logits - (log_softmax_at(logits, token)[1] - level)[:, None].astype(np.float32)
        return result

    def padded(logits: np.ndarray) -> np.ndarray:
        return np.pad(logits, ((0, 0), (0, short)))

    draft.facts["amount"] = -float(np.log1p(short * np.exp(-level)))
    draft.rollout.transforms.append(levelled)
    draft.training.transforms += [levelled, padded]


@scenario("above-zero-shard", "above-zero", accept=("scoring-path",))
def one_shard(draft: Draft) -> None:
    """Logprobs of up to many nats above 0: the normaliser sums over one vocabulary shard alone.

    It makes nats on many tokens of one side, which some would call a wrong scoring path.
    """
    half = draft.either()
    shard = draft.shape.vocabulary // int(draft.pick(2, 4))

    def local(logprob: np.ndarray) -> np.ndarray:
        lse = log_softmax_at(half.logits[:, :shard], np.zeros(len(logprob), np.int64))[1]
        result: np.ndarray = half.logits[np.arange(len(logprob)), draft.token] - lse
        return result

    half.after.append(local)


@scenario("above-zero-logits", "above-zero", accept=("scoring-path",))
def bare_logits(draft: Draft) -> None:
    """Raw logits are recorded as logprobs: nearly all are above 0."""
    half = draft.either()
    half.after.append(lambda logprob: half.logits[np.arange(len(logprob)), draft.token].astype(np.float64))


@scenario("above-zero-normaliser", "above-zero", accept=("low-precision-storage", "unknown"))
def coarse_normaliser(draft: Draft) -> None:
    """Certain tokens have logprobs a little above 0 as often as below: the normaliser alone was rounded to bfloat16.

    The step of that rounding is one of storage.
    """
    half = draft.either()
    half.after.append(
        lambda logprob: logprob + half.lse - rounded(half.lse.astype(np.float32), "bfloat16").astype(np.float64)
    )


@scenario("above-zero-offset", "above-zero", accept=("constant-offset",))
def lifted(draft: Draft) -> None:
    """All logprobs are too high by one number, certain tokens are above 0: both are said of it, rightly."""
    amount = draft.between(0.05, 1.0)
    draft.facts["amount"] = amount
    draft.either().after.append(lambda logprob: logprob + amount)
