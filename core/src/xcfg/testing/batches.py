"""Small token batches that a careless scorer gets wrong."""

from __future__ import annotations

import numpy as np

from xcfg.model.sample import TokenBatch

_LENGTHS = ((3, 5), (1, 4), (6, 1), (2, 7), (4, 3))
"""(prompt, response) tokens a sequence: all lengths differ, one prompt and one response are a single token."""


def toy_batch(vocabulary: int, *, seed: int = 0) -> TokenBatch:
    """Five sequences of token ids below ``vocabulary``, neighbours never equal, every third response token masked."""
    generator = np.random.default_rng(seed)
    rows = [_tokens(generator, vocabulary, prompt + response) for prompt, response in _LENGTHS]
    return TokenBatch(
        ids=[f"sequence-{row}" for row in range(len(rows))],
        prompts=[row[:prompt] for row, (prompt, _) in zip(rows, _LENGTHS, strict=True)],
        responses=[row[prompt:] for row, (prompt, _) in zip(rows, _LENGTHS, strict=True)],
        action_masks=[[place % 3 != 1 for place in range(response)] for _, response in _LENGTHS],
    )


def _tokens(generator: np.random.Generator, vocabulary: int, length: int) -> list[int]:
    """A walk whose steps are never 0, so that a token differs from its neighbours."""
    steps = generator.integers(1, vocabulary, size=length)
    return [int(token) for token in np.cumsum(steps) % vocabulary]


def reordered(batch: TokenBatch, order: list[int]) -> TokenBatch:
    """The sequences in another order."""
    return TokenBatch(
        ids=[batch.ids[row] for row in order],
        prompts=[batch.prompts[row] for row in order],
        responses=[batch.responses[row] for row in order],
        action_masks=[batch.action_masks[row] for row in order],
        weight_version=batch.weight_version,
    )


def with_masks(batch: TokenBatch, masks: list[list[bool]]) -> TokenBatch:
    """The same tokens under other action masks."""
    return TokenBatch(
        ids=batch.ids,
        prompts=batch.prompts,
        responses=batch.responses,
        action_masks=masks,
        weight_version=batch.weight_version,
    )
