"""Observed knob values, from what the workers and the live scheduler say, never from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Final

from xcfg_vllm.capabilities import FORCED_DECODE, PREFILL
from xcfg_vllm.scoring import Scored


class _Sentinel(Enum):
    UNOBSERVABLE = "unobservable"


UNOBSERVABLE: Final = _Sentinel.UNOBSERVABLE
Facts = Sequence[dict[str, Any]]
"""One worker's facts each, rank order (`Engine.worker_facts`)."""


def observe(facts: Facts, scored: Scored) -> dict[str, Any]:
    """Every knob this plugin can read back, or UNOBSERVABLE.

    A value that differs between workers or layers is the sorted values joined by `+`: it equals no single request.
    """
    return {knob: read(facts, scored) for knob, read in READERS.items()}


def _tensor_parallel_size(facts: Facts, scored: Scored) -> Any:
    sizes = {worker["parallel"]["group_size"] for worker in facts}
    ranks = sorted(worker["parallel"]["tp_rank"] for worker in facts)
    processes = {worker["parallel"]["pid"] for worker in facts}
    consistent = sizes == {len(facts)} and ranks == list(range(len(facts))) and len(processes) == len(facts)
    return len(facts) if consistent else UNOBSERVABLE


def _dtype(facts: Facts, scored: Scored) -> Any:
    """The dtype of the activations that really entered the linear layers and the head while scoring."""
    seen = (name for meter in scored.meters for kind in ("linear_dtypes", "head_dtypes") for name in meter[kind])
    return _one(seen)


def _kv_cache_dtype(facts: Facts, scored: Scored) -> Any:
    """The stored dtype; where the storage is raw bytes, the format the attention implementation reads them in."""
    values = []
    for layer in _layers(facts):
        for stored in layer["kv_storage_dtypes"] or ["none"]:
            values.append(layer["kv_format"] if stored in ("uint8", "int8") else stored)
    return _one(values)


def _attention_backend(facts: Facts, scored: Scored) -> Any:
    return _one(layer["backend"] for layer in _layers(facts))


def _enforce_eager(facts: Facts, scored: Scored) -> Any:
    """Eager if no module is set up for compilation and no CUDA graph is held; compiled only if it has happened."""
    states = set()
    for worker in facts:
        state = worker["compile"]
        if state["compiled"] or state["cudagraph_keys"]:
            states.add(False)
        elif state["compile_wrapped"] or state["cudagraph_wrapper"]:
            return UNOBSERVABLE
        else:
            states.add(True)
    return states.pop() if len(states) == 1 else UNOBSERVABLE


def _prefix_cache(facts: Facts, scored: Scored) -> Any:
    """On only if the live manager has it on and looked it up for every scored request."""
    cache = scored.cache
    if not cache["enabled"]:
        return False if not any(scored.cached_tokens) else UNOBSERVABLE
    return True if cache["pool_enabled"] and cache["lookups"] and not cache["skipped"] else UNOBSERVABLE


def _logprobs_mode(facts: Facts, scored: Scored) -> Any:
    return _one(worker["logprobs_mode"] for worker in facts if worker["logprobs_mode"] is not None)


def _sampled_with(name: str) -> Callable[[Facts, Scored], Any]:
    """A sampling value as every worker's sampler received it."""

    def read(facts: Facts, scored: Scored) -> Any:
        seen = {value for meter in scored.meters for value in meter["sampling"][name]}
        return seen.pop() if len(seen) == 1 else _one(map(str, seen))

    return read


def _scoring_path(facts: Facts, scored: Scored) -> Any:
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
    return _one(paths)


def _batch_size(facts: Facts, scored: Scored) -> Any:
    """The most requests any worker ran in one step."""
    largest = {meter["max_requests"] for meter in scored.meters}
    return largest.pop() if len(largest) == 1 else UNOBSERVABLE


def _threads(facts: Facts, scored: Scored) -> Any:
    threads = {worker["parallel"]["threads"] for worker in facts}
    return threads.pop() if len(threads) == 1 else UNOBSERVABLE


def _layers(facts: Facts) -> list[dict[str, Any]]:
    return [layer for worker in facts for layer in worker["attention"].values()]


def _one(values: Iterable[str]) -> Any:
    return "+".join(sorted(set(values))) or UNOBSERVABLE


READERS: Final[dict[str, Callable[[Facts, Scored], Any]]] = {
    "rollout.tensor_parallel_size": _tensor_parallel_size,
    "rollout.dtype": _dtype,
    "rollout.kv_cache_dtype": _kv_cache_dtype,
    "rollout.attention_backend": _attention_backend,
    "rollout.enforce_eager": _enforce_eager,
    "rollout.scoring_path": _scoring_path,
    "execution.prefix_cache": _prefix_cache,
    "execution.threads": _threads,
    "sampling.logprobs_mode": _logprobs_mode,
    "sampling.temperature": _sampled_with("temperature"),
    "sampling.top_p": _sampled_with("top_p"),
    "sampling.top_k": _sampled_with("top_k"),
    "batch.size": _batch_size,
}
