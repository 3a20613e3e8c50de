"""What the workers hold, told by their facts (:meth:`xcfg_vllm.worker.WorkerProbe.xcfg_facts`) and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_vllm.kv_names import observed_name
from xcfg_vllm.quantization import layers_reason, quantization_of

Observed = Json | Unobservable
Workers = Sequence[Mapping[str, Any]]


def tensor_parallel_size(workers: Workers) -> Observed:
    """Workers that are distinct processes of one group."""
    sizes = {worker["parallel"]["group_size"] for worker in workers}
    ranks = sorted(worker["parallel"]["tp_rank"] for worker in workers)
    processes = {worker["parallel"]["pid"] for worker in workers}
    consistent = sizes == {len(workers)} and ranks == list(range(len(workers))) and len(processes) == len(workers)
    return len(workers) if consistent else Unobservable(f"ranks {ranks} in groups of {sorted(sizes)}")


def kv_cache_dtype(workers: Workers) -> Observed:
    """What the tensors of the cache hold, over all layers."""
    return joined(
        observed_name(stored, layer["kv_format"])
        for layer in _layers(workers)
        for stored in layer["kv_storage_dtypes"] or ["none"]
    )


def attention_backend(workers: Workers) -> Observed:
    """The backend of every attention layer."""
    return joined(layer["backend"] for layer in _layers(workers))


def enforce_eager(workers: Workers) -> Observed:
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
    return single(states)


def compile_mode(workers: Workers) -> Observed:
    """The mode the workers settled on, where what they compiled bears it out; ``NONE`` where nothing is to be compiled.

    vLLM settles on a mode whether or not the model, and the platform, have anything to compile under it.
    """
    modes: list[str] = []
    for worker in workers:
        state = worker["compile"]
        compiled = state["stock_compiled"] or bool(state["compiled"])
        if not compiled and state["compile_wrapped"]:
            return Unobservable(f"modules are set up for {state['mode']} and none was compiled")
        if compiled and state["mode"] == "NONE":
            return Unobservable("modules were compiled though a worker settled on NONE")
        modes.append(state["mode"] if compiled else "NONE")
    return joined(modes)


def quantization(workers: Workers, declared: Mapping[str, str]) -> Observed:
    """The method the workers settled on, where each layer of each of them is computed as the checkpoint declares it."""
    found = [quantization_of(worker) for worker in workers]
    unknown = [item for item in found if isinstance(item, Unobservable)]
    if unknown:
        return unknown[0]
    reason = layers_reason(workers, declared)
    return Unobservable(reason) if reason else joined(str(item) for item in found)


def collective(workers: Workers) -> Observed:
    """What carries the tensor-parallel group's sums; for one worker, what would."""
    return joined(name for worker in workers for name in worker["parallel"]["carriers"])


def logprobs_mode(workers: Workers) -> Observed:
    """The mode of every worker's sampler that has one."""
    return joined(worker["logprobs_mode"] for worker in workers if worker["logprobs_mode"] is not None)


def of_workers(name: str) -> Callable[[Workers], Observed]:
    """A fact of each worker's process, which must be one."""

    def read(workers: Workers) -> Observed:
        return single({worker["parallel"][name] for worker in workers})

    return read


def _layers(workers: Workers) -> list[dict[str, Any]]:
    return [layer for worker in workers for layer in worker["attention"].values()]


def joined(values: Iterable[str]) -> Observed:
    """Values that differ between workers or layers joined by ``+``: equal to no single request."""
    return "+".join(sorted(set(values))) or Unobservable()


def single(values: set[Json]) -> Observed:
    """The one value there is; unobservable where the workers differ."""
    return next(iter(values)) if len(values) == 1 else Unobservable(f"the workers hold {sorted(values)}")
