"""Drawing responses from the numpy language model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from xcfg.errors import InvalidInput
from xcfg.model.experiment import SampleSource
from xcfg.testing.language import HIDDEN, LanguageModel, selected_logprob


def draw_response(
    model: LanguageModel,
    prompt: Sequence[int],
    source: SampleSource,
    *,
    stops: Collection[int | None],
    row: int,
    processed: bool,
) -> tuple[list[int], list[float]]:
    """Response tokens and their logprobs (nats), drawn with a generator of its own for each row.

    ``processed`` reports logprobs after the temperature, as an engine's processed mode does. Raises InvalidInput for
    an empty prompt.
    """
    if not prompt:
        raise InvalidInput("the prompt is empty", where=f"prompt {row}")
    generator = np.random.default_rng([source.seed, row])
    state = np.zeros(HIDDEN, dtype=np.float32)
    for token in prompt:
        state = model.advance(state, token)
    drawn: list[int] = []
    logprobs: list[float] = []
    while len(drawn) < source.max_new_tokens:
        logits = model.read(state, len(prompt) + len(drawn) - 1)
        token = _draw(logits, source, generator)
        reported = (logits / np.float32(source.temperature)).astype(np.float32) if processed else logits
        logprobs.append(float(selected_logprob(reported[None], np.array([token]))[0]))
        drawn.append(token)
        if token in stops and not source.ignore_eos:
            break
        state = model.advance(state, token)
    return drawn, logprobs


def _draw(logits: np.ndarray, source: SampleSource, generator: np.random.Generator) -> int:
    """One token at the source's temperature from its top-k and top-p support; temperature 0 takes the maximum."""
    if source.temperature == 0:
        return int(logits.argmax())
    exact = logits.astype(np.float64) / source.temperature
    order = np.argsort(-exact, kind="stable")
    if source.top_k:
        order = order[: source.top_k]
    weights = np.exp(exact[order] - exact[order[0]])
    weights /= weights.sum()
    keep = int(np.searchsorted(np.cumsum(weights), source.top_p)) + 1
    order, weights = order[:keep], weights[:keep]
    return int(generator.choice(order, p=weights / weights.sum()))
