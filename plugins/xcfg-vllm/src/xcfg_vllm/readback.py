"""Observed knob values, from what the workers and the live scheduler say, never from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg.model.tolerance import DTYPE_ORDER
from xcfg_vllm.capabilities import FORCED_DECODE, PREFILL
from xcfg_vllm.kv_names import observed_name
from xcfg_vllm.live import Live
from xcfg_vllm.quantization import quantization_of
from xcfg_vllm.sampling_values import VALUES
from xcfg_vllm.scoring import EngineScores

Observed = Json | Unobservable
Workers = Sequence[Mapping[str, Any]]
Reader = Callable[[Workers, EngineScores], Observed]


def activation_dtype(workers: Workers, scored: EngineScores) -> Observed:
    """The least precise dtype of the activations that entered the linear layers and the head while scoring."""
    seen = {name for meter in scored.meters for kind in ("linear_dtypes", "head_dtypes") for name in meter[kind]}
    if not seen:
        return Unobservable("no linear layer was seen to run")
    outside = sorted(seen - set(DTYPE_ORDER))
    return outside[0] if outside else max(seen, key=DTYPE_ORDER.index)


def _tensor_parallel_size(workers: Workers, scored: EngineScores) -> Observed:
    sizes = {worker["parallel"]["group_size"] for worker in workers}
    ranks = sorted(worker["parallel"]["tp_rank"] for worker in workers)
    processes = {worker["parallel"]["pid"] for worker in workers}
    consistent = sizes == {len(workers)} and ranks == list(range(len(workers))) and len(processes) == len(workers)
    return len(workers) if consistent else Unobservable(f"ranks {ranks} in groups of {sorted(sizes)}")


def _kv_cache_dtype(workers: Workers, scored: EngineScores) -> Observed:
    return _joined(
        observed_name(stored, layer["kv_format"])
        for layer in _layers(workers)
        for stored in layer["kv_storage_dtypes"] or ["none"]
    )


def _attention_backend(workers: Workers, scored: EngineScores) -> Observed:
    return _joined(layer["backend"] for layer in _layers(workers))


def _enforce_eager(workers: Workers, scored: EngineScores) -> Observed:
    """Eager if no module is set up for compilation and no CUDA graph is held; compiled only if it has happened."""
    states: set[Json] = set()
    for worker in workers:
        state = worker["compile"]
        if state["compiled"] or state["stock_compiled"] or state["cudagraph_keys"]:
            states.add(False)
        elif state["compile_wrapped"] or state["cudagraph_wrapper"]:
            return Unobservable("modules are set up for compilation and none was compiled")
        else:
            states.add(True)
    return _single(states)


def _compile_mode(workers: Workers, scored: EngineScores) -> Observed:
    """The mode the workers settled on, where what they compiled bears it out."""
    for worker in workers:
        state = worker["compile"]
        compiled = state["stock_compiled"] if state["mode"] == "STOCK_TORCH_COMPILE" else bool(state["compiled"])
        if compiled is (state["mode"] == "NONE"):
            return Unobservable(
                f"a worker settled on {state['mode']} and {'has' if compiled else 'nothing was'} compiled"
            )
    return _joined(worker["compile"]["mode"] for worker in workers)


def _quantization(workers: Workers, scored: EngineScores) -> Observed:
    found = [quantization_of(worker) for worker in workers]
    unknown = [item for item in found if isinstance(item, Unobservable)]
    return unknown[0] if unknown else _joined(str(item) for item in found)


def _collective(workers: Workers, scored: EngineScores) -> Observed:
    """What carries the tensor-parallel group's sums; for one worker, what would."""
    return _joined(name for worker in workers for name in worker["parallel"]["carriers"])


def _prefix_cache(workers: Workers, scored: EngineScores) -> Observed:
    """On only if the live manager has it on and looked it up for every scored request."""
    cache = scored.cache
    if not cache["enabled"]:
        return Unobservable("tokens came from a cache that is off") if any(scored.cached_tokens) else False
    consulted = cache["pool_enabled"] and cache["lookups"] and not cache["skipped"]
    return True if consulted else Unobservable(f"{cache['skipped']} of {cache['lookups']} lookups were skipped")


def _logprobs_mode(workers: Workers, scored: EngineScores) -> Observed:
    return _joined(worker["logprobs_mode"] for worker in workers if worker["logprobs_mode"] is not None)


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
    return _joined(paths)


def _of_sampler(name: str) -> Reader:
    """As every worker's sampler received it."""

    def read(workers: Workers, scored: EngineScores) -> Observed:
        return _single({value for meter in scored.meters for value in meter["sampling"][name]})

    return read


def _of_workers(name: str) -> Reader:
    def read(workers: Workers, scored: EngineScores) -> Observed:
        return _single({worker["parallel"][name] for worker in workers})

    return read


def _of_scheduler(name: str) -> Reader:
    def read(workers: Workers, scored: EngineScores) -> Observed:
        value: Json = scored.cache[name]
        return value

    return read


def _layers(workers: Workers) -> list[dict[str, Any]]:
    return [layer for worker in workers for layer in worker["attention"].values()]


def _joined(values: Iterable[str]) -> Observed:
    """Values that differ between workers or layers joined by ``+``: equal to no single request."""
    return "+".join(sorted(set(values))) or Unobservable()


def _single(values: set[Json]) -> Observed:
    return next(iter(values)) if len(values) == 1 else Unobservable(f"the workers hold {sorted(values)}")


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
    most = _single({meter["max_requests"] for meter in live.scored.meters})
    expected = min(live.batch_size, len(live.scored.response_lengths))
    return live.batch_size if most == expected else most


READERS: Mapping[str, Callable[[Live], Observed]] = {
    "batch.size": batch_size,
    **{
        knob: _after_scoring(read)
        for knob, read in {
            "rollout.tensor_parallel_size": _tensor_parallel_size,
            "rollout.dtype": activation_dtype,
            "rollout.quantization": _quantization,
            "rollout.kv_cache_dtype": _kv_cache_dtype,
            "rollout.attention_backend": _attention_backend,
            "rollout.enforce_eager": _enforce_eager,
            "rollout.scoring_path": _scoring_path,
            "rollout.chunked_prefill": _of_scheduler("chunked_prefill"),
            "execution.prefix_cache": _prefix_cache,
            "execution.max_num_seqs": _of_scheduler("max_num_seqs"),
            "execution.compile_mode": _compile_mode,
            "execution.collective": _collective,
            "execution.threads": _of_workers("threads"),
            "sampling.logprobs_mode": _logprobs_mode,
            **{f"sampling.{name}": _of_sampler(name) for name in VALUES},
            "vllm.seed": _of_workers("seed"),
            "vllm.block_size": _of_scheduler("block_size"),
            "vllm.kv_cache_blocks": _of_scheduler("blocks"),
            "vllm.max_model_len": _of_scheduler("max_model_len"),
            "vllm.max_num_batched_tokens": _of_scheduler("max_num_batched_tokens"),
        }.items()
    },
}
"""Reader of every knob of the scorer ``vllm``."""
