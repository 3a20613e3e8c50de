"""Observed knob values, from what the workers and the live scheduler say, never from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg.model.tolerance import DTYPE_ORDER
from xcfg_vllm.capabilities import FORCED_DECODE, PREFILL
from xcfg_vllm.held import (
    Observed,
    Workers,
    attention_backend,
    collective,
    compile_mode,
    enforce_eager,
    joined,
    kv_cache_dtype,
    logprobs_mode,
    of_workers,
    quantization,
    single,
    tensor_parallel_size,
)
from xcfg_vllm.live import Live
from xcfg_vllm.sampling_values import VALUES
from xcfg_vllm.scoring import EngineScores

Reader = Callable[[Workers, EngineScores], Observed]


def activation_dtype(workers: Workers, scored: EngineScores) -> Observed:
    """The least precise dtype of the activations that entered the linear layers and the head while scoring."""
    seen = {name for meter in scored.meters for kind in ("linear_dtypes", "head_dtypes") for name in meter[kind]}
    if not seen:
        return Unobservable("no linear layer was seen to run")
    outside = sorted(seen - set(DTYPE_ORDER))
    return outside[0] if outside else max(seen, key=DTYPE_ORDER.index)


def _prefix_cache(workers: Workers, scored: EngineScores) -> Observed:
    """On only if the live manager has it on and looked it up for every scored request."""
    cache = scored.cache
    if not cache["enabled"]:
        return Unobservable("tokens came from a cache that is off") if any(scored.cached_tokens) else False
    consulted = cache["pool_enabled"] and cache["lookups"] and not cache["skipped"]
    return True if consulted else Unobservable(f"{cache['skipped']} of {cache['lookups']} lookups were skipped")


def _scoring_path(workers: Workers, scored: EngineScores) -> Observed:
    """From the workers' counters: every response token but the first came out of a decode step, or none did."""
    tokens, sequences = sum(scored.response_lengths), len(scored.response_lengths)
    paths = set()
    for meter in scored.meters:
        if meter["decoded"] == tokens - sequences and not meter["prompt_scored"]:
            paths.add(FORCED_DECODE)
        elif meter["decoded"] == 0 and meter["prompt_scored"] == sequences:
            paths.add(PREFILL)
        else:
            paths.add("mixed")
    return joined(paths)


def _of_sampler(name: str) -> Reader:
    """As every worker's sampler received it."""

    def read(workers: Workers, scored: EngineScores) -> Observed:
        return single({value for meter in scored.meters for value in meter["sampling"][name]})

    return read


def _of_scheduler(name: str) -> Reader:
    def read(workers: Workers, scored: EngineScores) -> Observed:
        value: Json = scored.cache[name]
        return value

    return read


def _held(read: Callable[[Workers], Observed]) -> Reader:
    return lambda workers, scored: read(workers)


def _after_scoring(read: Reader) -> Callable[[Live], Observed]:
    def observe(live: Live) -> Observed:
        if live.scored is None:
            return Unobservable("nothing was scored yet")
        return read(live.workers, live.scored)

    return observe


def batch_size(live: Live) -> Observed:
    """The batch size in force where the fullest step bears it out; else the most requests a worker ran in one step.

    Fewer sequences than the batch size make a smaller step, which contradicts nothing.
    """
    if live.scored is None:
        return Unobservable("nothing was scored yet")
    most = single({meter["max_requests"] for meter in live.scored.meters})
    expected = min(live.batch_size, len(live.scored.response_lengths))
    return live.batch_size if most == expected else most


READERS: Mapping[str, Callable[[Live], Observed]] = {
    "batch.size": batch_size,
    **{
        knob: _after_scoring(read)
        for knob, read in {
            "rollout.tensor_parallel_size": _held(tensor_parallel_size),
            "rollout.dtype": activation_dtype,
            "rollout.quantization": _held(quantization),
            "rollout.kv_cache_dtype": _held(kv_cache_dtype),
            "rollout.attention_backend": _held(attention_backend),
            "rollout.enforce_eager": _held(enforce_eager),
            "rollout.scoring_path": _scoring_path,
            "rollout.chunked_prefill": _of_scheduler("chunked_prefill"),
            "execution.prefix_cache": _prefix_cache,
            "execution.max_num_seqs": _of_scheduler("max_num_seqs"),
            "execution.compile_mode": _held(compile_mode),
            "execution.collective": _held(collective),
            "execution.threads": _held(of_workers("threads")),
            "sampling.logprobs_mode": _held(logprobs_mode),
            **{f"sampling.{name}": _of_sampler(name) for name in VALUES},
            "vllm.seed": _held(of_workers("seed")),
            "vllm.block_size": _of_scheduler("block_size"),
            "vllm.kv_cache_blocks": _of_scheduler("blocks"),
            "vllm.max_model_len": _of_scheduler("max_model_len"),
            "vllm.max_num_batched_tokens": _of_scheduler("max_num_batched_tokens"),
        }.items()
    },
}
"""Reader of every knob of the scorer ``vllm``."""
