"""Logits bent by a function that keeps their order, and logprobs off in proportion."""

from __future__ import annotations

import numpy as np

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.magnitude import NATS
from xcfg.testing.scenarios.scenario import scenario


def capped(logits: np.ndarray, cap: float) -> np.ndarray:
    """A tanh of the logits that never exceeds ``cap``."""
    result: np.ndarray = np.float32(cap) * np.tanh(logits / np.float32(cap))
    return result


@scenario("monotone-softcap", "monotone", accept=("temperature",))
def softcap(draft: Draft) -> None:
    """Likely tokens are less so on one side: it caps the logits, the other does not.

    With a wide cap over a narrow range of logits a temperature fits almost as well.
    """
    cap = draft.pick(10.0, 15.0, 20.0)
    draft.facts["cap"] = cap
    draft.either().transforms.append(lambda logits: capped(logits, cap))


@scenario("monotone-order", "monotone", cause=("A3",), accept=("temperature",))
def softcap_order(draft: Draft) -> None:
    """Both sides cap and scale, in another order: the values differ, their order does not."""
    cap, scale = draft.pick(15.0, 20.0), np.float32(draft.pick(0.5, 1.5))
    draft.rollout.transforms.append(lambda logits: capped(logits, cap) * scale)
    draft.training.transforms.append(lambda logits: capped(logits * scale, cap))


@scenario("monotone-power", "monotone", accept=("temperature", "unknown"))
def bent(draft: Draft) -> None:
    """One side's head bends large logits by a function that the other lacks."""
    power = np.float32(draft.pick(0.9, 1.1))
    draft.either().transforms.append(lambda logits: np.sign(logits) * np.abs(logits) ** power)


@scenario("proportional-base", "proportional")
def other_base(draft: Draft) -> None:
    """One side's logprobs are the other's times a number: logarithms of base 2 or 10, or a mean over another count."""
    factor = draft.pick(1 / np.log(2), 1 / np.log(10), 0.9, 1.1)
    draft.facts["factor"] = factor
    draft.either().after.append(lambda logprob: logprob * factor)


@scenario("proportional-noise", "proportional", cause=("A1",), keep=("dtype",), accept=("unknown", "stale-weights"))
def relative_noise(draft: Draft) -> None:
    """Differences of both signs that grow in step with |logprob|: an exponential approximated on one side.

    Of both signs, it is also drift without a structure.
    """
    size = draft.between(15 * NATS[draft.shape.dtype], 0.3)
    noise = size * draft.generator.standard_normal(len(draft.row))
    draft.either().after.append(lambda logprob: logprob * (1 + np.clip(noise, -0.9, 0.9)))


@scenario("log-epsilon", "unknown", accept=("proportional", "monotone", "processed", "kept-mass", "temperature"))
def epsilon(draft: Draft) -> None:
    """Only unlikely tokens differ, one way, more the rarer they are: the log of the probability plus a small number.

    A function of the probability, which no kind of the list is; several come near.
    """
    small = draft.pick(1e-3, 1e-2)
    draft.either().after.append(lambda logprob: np.log(np.exp(logprob) + small) - np.log1p(small))
