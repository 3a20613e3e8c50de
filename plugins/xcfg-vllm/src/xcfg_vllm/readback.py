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


def _cache_state(workers: Workers, scored: EngineScores) -> Observed:
    """Warm if every whole block of every prompt came from the cache, cold if none of any did; ``off`` without one."""
    if not scored.cache["enabled"]:
        return "off"
    block = scored.cache["block_size"]
    most = [(length - 1) // block * block for length in scored.prompt_lengths]
    if not any(most):
        return Unobservable(f"no prompt fills a block of {block} tokens, so warm and cold are one")
    if list(scored.cached_tokens) == most:
        return "warm"
    return "mixed" if any(scored.cached_tokens) else "cold"


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


def executor_backend(live: Live) -> Observed:
    """By the class of the live executor; a class without a name here is named itself."""
    if live.scored is None:
        return Unobservable("nothing was scored yet")
    return _EXECUTORS.get(live.engine.executor, live.engine.executor)


def frontend(live: Live) -> Observed:
    """Where the live scheduler is."""
    if live.scored is None:
        return Unobservable("nothing was scored yet")
    return live.engine.frontend()


def adapter(live: Live) -> Observed:
    """The adapter every scored request went through, where each worker has it on every layer it adapts."""
    if live.scored is None:
        return Unobservable("nothing was scored yet")
    seen = {name for meter in live.scored.meters for name in meter["adapters"]}
    if seen == {""}:
        return None
    wanted = set(live.admitted.adapter.layers) if live.admitted.adapter else set()
    for rank, worker in enumerate(live.workers):
        held = worker["adapters"] or {"active": [], "layers": []}
        if len(held["active"]) != 1:
            return Unobservable(f"worker {rank} holds {len(held['active'])} adapters in force, and one was sent")
        if absent := sorted(wanted - set(held["layers"])):
            return Unobservable(f"worker {rank} does not apply the adapter to {absent[0]} ({len(absent)} such layers)")
    return joined(name or "none" for name in seen)


_EXECUTORS = {"MultiprocExecutor": "mp", "UniProcExecutor": "uni", "RayDistributedExecutor": "ray"}


def _quantization(live: Live) -> Observed:
    if live.scored is None:
        return Unobservable("nothing was scored yet")
    return quantization(live.workers, live.admitted.declared)


READERS: Mapping[str, Callable[[Live], Observed]] = {
    "batch.size": batch_size,
    "rollout.quantization": _quantization,
    "vllm.executor_backend": executor_backend,
    "vllm.frontend": frontend,
    "vllm.lora": adapter,
    **{
        knob: _after_scoring(read)
        for knob, read in {
            "rollout.tensor_parallel_size": _held(tensor_parallel_size),
            "rollout.dtype": activation_dtype,
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
            "vllm.min_p": _of_sampler("min_p"),
            "vllm.prefix_cache_state": _cache_state,
            "vllm.seed": _held(of_workers("seed")),
            "vllm.block_size": _of_scheduler("block_size"),
            "vllm.kv_cache_blocks": _of_scheduler("blocks"),
            "vllm.max_model_len": _of_scheduler("max_model_len"),
            "vllm.max_num_batched_tokens": _of_scheduler("max_num_batched_tokens"),
        }.items()
    },
}
"""Reader of every knob of the scorer ``vllm``."""
