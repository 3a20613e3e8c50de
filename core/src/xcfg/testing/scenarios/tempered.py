"""One side divides its logits by a temperature."""

from __future__ import annotations

import numpy as np

from xcfg.testing.scenarios.draft import Draft, Half, Transform
from xcfg.testing.scenarios.magnitude import NATS
from xcfg.testing.scenarios.scenario import scenario


def divided(temperature: float) -> Transform:
    """Logits over ``temperature``, in float32."""
    return lambda logits: logits / np.float32(temperature)


def drawn_temperature(draft: Draft) -> float:
    """A common setting, or one so near 1 that d, about |1 - T| nats on tokens in doubt, is ten times the noise."""
    near = 1 + draft.pick(-1, 1) * max(1e-4, 10 * NATS[draft.shape.dtype])
    temperature = draft.pick(0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.5, near)
    draft.facts["temperature"] = temperature
    return temperature


def tempered(draft: Draft, half: Half, where: np.ndarray | None = None) -> None:
    """Score ``half`` at the drawn temperature, which the tokens were drawn at too."""
    divide = divided(drawn_temperature(draft))
    draft.sampler.append(divide)
    if where is None:
        half.transforms.append(divide)
    else:
        half.transforms.append(lambda logits: np.where(where[:, None], divide(logits), logits))


@scenario("temperature-rollout", "temperature", cause=("S1",))
def temperature_rollout(draft: Draft) -> None:
    """All tokens off, the likely ones one way and the unlikely ones the other: the engine logs tempered logprobs."""
    tempered(draft, draft.rollout)


@scenario("temperature-training", "temperature", cause=("S1",))
def temperature_training(draft: Draft) -> None:
    """The trainer divides by the sampling temperature, the engine logs raw logprobs."""
    tempered(draft, draft.training)


@scenario("temperature-twice", "temperature")
def temperature_twice(draft: Draft) -> None:
    """Both sides divide, and one of them does so twice: in the model's head and again in the loss."""
    temperature = drawn_temperature(draft)
    draft.sampler.append(divided(temperature))
    draft.rollout.transforms.append(divided(temperature))
    draft.training.transforms += [divided(temperature), divided(temperature)]


@scenario("temperature-scale", "temperature", cause=("A2",), accept=("proportional", "monotone"))
def logit_scale(draft: Draft) -> None:
    """The loss is far too high while greedy tokens are right: a fused loss drops the scale of the logits.

    A scale of the logits is the inverse of a temperature, so one number explains it under either name.
    """
    scale = draft.pick(0.5, 0.75, 1.25, 2.0)
    draft.facts["temperature"] = 1 / scale
    draft.training.transforms.append(divided(1 / scale))


@scenario("temperature-rows", "temperature", accept=("sequences",))
def temperature_rows(draft: Draft) -> None:
    """Requests asked for a temperature of their own: some rows are tempered, the others fit.

    That it is some rows, all of each, is as true as that a temperature explains those.
    """
    hit = draft.generator.random(draft.shape.rows) < 0.5
    hit[draft.generator.integers(draft.shape.rows)] = True
    draft.facts["hit"] = hit
    tempered(draft, draft.either(), hit[draft.row])
