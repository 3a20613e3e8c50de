"""Sampling the token batch from the production rollout configuration, with reproducible per-request seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from xcfg_vllm.faults import EngineFault
from xcfg_vllm.grouping import groups
from xcfg_vllm.sampling_values import Sampling, request_seed

if TYPE_CHECKING:
    from xcfg_vllm.engine import Engine


@frozen(kw_only=True)
class Sampled:
    """One sampled sequence: ids, and per response token the logprob reported while sampling (nats, float32)."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    logprobs: NDArray[np.float32]


def sample(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    *,
    sampling: Sampling,
    max_new_tokens: int,
    seed: int,
    batch_size: int,
    ignore_eos: bool = False,
) -> list[Sampled]:
    """Sample one response per prompt (token ids), ``batch_size`` prompts submitted together, order kept.

    Starts from an empty prefix cache. Request i is seeded by ``request_seed(seed, i)``.
    """
    engine.reset_cache()
    results: list[Sampled] = []
    for start, group in groups(prompts, batch_size):
        params = [
            sampling.params(
                logprobs=0,
                max_tokens=max_new_tokens,
                seed=request_seed(seed, start + offset),
                ignore_eos=ignore_eos,
            )
            for offset in range(len(group))
        ]
        for ids, output in zip(group, engine.generate(group, params), strict=True):
            results.append(_sampled(ids, output.outputs[0]))
    return results


def _sampled(prompt_ids: Sequence[int], completion: Any) -> Sampled:
    ids = tuple(completion.token_ids)
    return Sampled(prompt_ids=tuple(prompt_ids), response_ids=ids, logprobs=emitted_logprobs(ids, completion))


def emitted_logprobs(ids: Sequence[int], completion: Any) -> NDArray[np.float32]:
    """The emitted tokens' logprobs, float32 [len(ids)]; raises EngineFault when one is missing."""
    reported = completion.logprobs
    if reported is None or len(reported) != len(ids):
        raise EngineFault(f"vLLM reported {len(reported or ())} logprobs for {len(ids)} tokens")
    missing = [at for at, (token, entry) in enumerate(zip(ids, reported, strict=True)) if token not in entry]
    if missing:
        raise EngineFault(f"vLLM reported no logprob for the token emitted at position {missing[0]}")
    return np.array([entry[token].logprob for token, entry in zip(ids, reported, strict=True)], dtype=np.float32)
