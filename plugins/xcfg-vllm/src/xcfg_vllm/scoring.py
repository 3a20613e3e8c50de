"""Scoring fixed tokens on a live engine, through the decode path or through prefill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from xcfg.errors import UnsupportedError
from xcfg_vllm.capabilities import FORCED_DECODE, PREFILL, path_reason
from xcfg_vllm.faults import EngineFault
from xcfg_vllm.forced_params import forcing_request
from xcfg_vllm.grouping import groups
from xcfg_vllm.sampling import emitted_logprobs
from xcfg_vllm.sampling_values import Sampling

if TYPE_CHECKING:
    from xcfg_vllm.engine import Engine

COLD = "cold"
"""State of the prefix cache: emptied before a pass and not filled."""


@frozen(kw_only=True)
class TokenSequence:
    """Token ids of one prompt and its response; the response is what is scored."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]


@frozen(kw_only=True)
class EngineScores:
    """Logprobs in the order given (nats, float32, one per response token), and what the engine saw.

    ``meters`` has one entry per worker, ``cache`` is the live scheduler's, ``cached_tokens`` is per sequence.
    """

    logprobs: tuple[NDArray[np.float32], ...]
    cached_tokens: tuple[int, ...]
    response_lengths: tuple[int, ...]
    prompt_lengths: tuple[int, ...] = ()
    meters: tuple[dict[str, Any], ...]
    cache: dict[str, Any]
    path: str


def score(
    engine: Engine,
    sequences: Sequence[TokenSequence],
    *,
    path: str = FORCED_DECODE,
    batch_size: int,
    sampling: Sampling | None = None,
    cache_state: str | None = None,
) -> EngineScores:
    """Score every response token given all tokens before it, ``batch_size`` sequences submitted together.

    The prefix cache is emptied first and then, where it is on and ``cache_state`` is not ``cold``, filled with the
    prompts, outside the counters: the outcome depends on nothing that ran before. Every prompt and response has a
    token and fits the engine.
    Raises UnsupportedError, EngineFault (a token not forced, a preemption, a missing logprob), WorkerDied.
    """
    sampling = sampling or Sampling()
    cached = engine.cache.facts()["enabled"]
    reason = path_reason(path=path, logprobs_mode=engine.settings.logprobs_mode, sampling=sampling, prefix_cache=cached)
    if reason:
        raise UnsupportedError(reason, where="rollout.scoring_path")
    engine.reset_cache()
    if cached and cache_state != COLD:
        engine.generate([s.prompt_ids for s in sequences], [sampling.params(max_tokens=1) for _ in sequences])
    engine.meters(reset=True)
    engine.cache.reset()
    read = _forced_decode if path == FORCED_DECODE else _prefill
    logprobs: list[NDArray[np.float32]] = []
    reused_tokens: list[int] = []
    for _, group in groups(sequences, batch_size):
        for values, reused in read(engine, group, sampling):
            logprobs.append(values)
            reused_tokens.append(reused)
    meters = engine.meters()
    resumed = sum(meter["resumed"] for meter in meters)
    if resumed:
        raise EngineFault(
            f"{resumed} requests were preempted and recomputed, so their tokens did not all take the "
            f"{path} path: raise vllm.kv_cache_blocks or lower batch.size"
        )
    return EngineScores(
        logprobs=tuple(logprobs),
        cached_tokens=tuple(reused_tokens),
        response_lengths=tuple(len(sequence.response_ids) for sequence in sequences),
        prompt_lengths=tuple(len(sequence.prompt_ids) for sequence in sequences),
        meters=tuple(meters),
        cache=engine.cache.facts(),
        path=path,
    )


Read = list[tuple[NDArray[np.float32], int]]


def _forced_decode(engine: Engine, group: Sequence[TokenSequence], sampling: Sampling) -> Read:
    params = [
        sampling.params(
            logprobs=0,
            max_tokens=len(sequence.response_ids),
            ignore_eos=True,
            **forcing_request(engine.forcing, list(sequence.response_ids)),
        )
        for sequence in group
    ]
    outputs = engine.generate([sequence.prompt_ids for sequence in group], params)
    read: Read = []
    for sequence, output in zip(group, outputs, strict=True):
        completion = output.outputs[0]
        if tuple(completion.token_ids) != sequence.response_ids:
            raise EngineFault("vLLM emitted other tokens than the forced ones: forcing did not take effect")
        read.append((emitted_logprobs(sequence.response_ids, completion), output.num_cached_tokens or 0))
    return read


def _prefill(engine: Engine, group: Sequence[TokenSequence], sampling: Sampling) -> Read:
    """``prompt_logprobs[t]`` is the logprob of token t given the tokens before t, so no shift is applied here."""
    params = [sampling.params(prompt_logprobs=0, max_tokens=1) for _ in group]
    outputs = engine.generate([sequence.prompt_ids + sequence.response_ids for sequence in group], params)
    read: Read = []
    for sequence, output in zip(group, outputs, strict=True):
        entries = output.prompt_logprobs[len(sequence.prompt_ids) :]
        if len(entries) != len(sequence.response_ids):
            raise EngineFault(f"vLLM reported {len(entries)} logprobs for {len(sequence.response_ids)} tokens")
        values = [entry[token].logprob for token, entry in zip(sequence.response_ids, entries, strict=True)]
        read.append((np.array(values, dtype=np.float32), output.num_cached_tokens or 0))
    return read


def room(path: str) -> int:
    """Tokens a scoring path generates beyond the sequence: vLLM's prefill cannot end without drawing one."""
    return 1 if path == PREFILL else 0
