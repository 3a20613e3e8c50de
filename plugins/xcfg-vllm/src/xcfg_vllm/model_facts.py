"""Facts read from the model as one worker holds it, not from the configuration that asked for it."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcfg_vllm.layer_facts import computed_by
from xcfg_vllm.meter import dtype_name

if TYPE_CHECKING:
    import torch


def attention_facts(context: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Layer name to backend, implementation class and stored KV dtype, from vLLM's forward context."""
    facts: dict[str, dict[str, Any]] = {}
    for name, layer in context.items():
        backend = getattr(layer, "attn_backend", None)
        if backend is None:
            continue
        stored = cache_tensors(getattr(layer, "kv_cache", None))
        implementation = getattr(layer, "impl", None)
        facts[name] = {
            "backend": backend.get_name(),
            "implementation": type(implementation).__name__,
            "kv_storage_dtypes": sorted({dtype_name(tensor.dtype) for tensor in stored}),
            "kv_format": str(getattr(implementation, "kv_cache_dtype", "unknown")),
        }
    return facts


def cache_tensors(held: Any) -> list[torch.Tensor]:
    """The tensors inside whatever a vLLM version keeps as a layer's ``kv_cache``: a tensor or nested sequences."""
    if hasattr(held, "dtype"):
        return [held] if held.numel() else []
    if isinstance(held, list | tuple):
        return [tensor for item in held for tensor in cache_tensors(item)]
    return []


def weight_facts(model: torch.nn.Module) -> dict[str, Any]:
    """Parameter dtypes with tensor counts (emptied ones apart) and the quantisation method of each linear layer."""
    kept: Counter[str] = Counter()
    emptied: Counter[str] = Counter()
    for _, parameter in model.named_parameters():
        (kept if parameter.numel() else emptied)[dtype_name(parameter.dtype)] += 1
    methods = {name: _method(module) for name, module in model.named_modules() if hasattr(module, "quant_method")}
    return {"parameter_dtypes": dict(kept), "emptied_dtypes": dict(emptied), "quant_methods": methods}


def logit_facts(model: torch.nn.Module) -> dict[str, float]:
    """Factor and soft cap that the model itself applies to its logits; 1 and 0 where it has neither."""
    from vllm.model_executor.layers.logits_processor import LogitsProcessor

    found = [module for module in model.modules() if isinstance(module, LogitsProcessor)]
    scales = {float(getattr(module, "scale", None) or 1.0) for module in found}
    caps = {float(getattr(module, "soft_cap", None) or 0.0) for module in found}
    if len(scales) > 1 or len(caps) > 1:
        raise ValueError(f"the model scales its logits in different ways: {scales}, {caps}")
    return {"scale": scales.pop() if scales else 1.0, "soft_cap": caps.pop() if caps else 0.0}


def _method(module: torch.nn.Module) -> str:
    named = computed_by(module)
    return "/".join(named[part] for part in ("method", "scheme", "kernel") if named[part])


def compile_facts(model: torch.nn.Module, runner: Any) -> dict[str, Any]:
    """Which modules torch.compile has really compiled by now, and the CUDA graphs captured."""
    wrapped = {
        name or "<root>": bool(getattr(module, "compiled", False))
        for name, module in model.named_modules()
        if getattr(module, "do_not_compile", True) is False
    }
    graphs = type(runner.model).__name__ == "CUDAGraphWrapper"
    dispatcher = getattr(runner, "cudagraph_dispatcher", None)
    keys = getattr(dispatcher, "cudagraph_keys", None) or {}
    return {
        "mode": runner.compilation_config.mode.name,
        "stock_compiled": model._compiled_call_impl is not None,
        "compile_wrapped": sorted(wrapped),
        "compiled": sorted(name for name, done in wrapped.items() if done),
        "cudagraph_wrapper": graphs,
        "cudagraph_keys": sum(len(of_mode) for of_mode in keys.values()),
    }


def parallel_facts() -> dict[str, Any]:
    """Rank, world size and collective backend of this worker's tensor-parallel group, its threads and its seed."""
    import torch
    from vllm.distributed import get_tp_group

    group = get_tp_group()
    communicator = group.device_communicator
    return {
        "pid": os.getpid(),
        "tp_rank": group.rank_in_group,
        "tp_size": group.world_size,
        "group_size": torch.distributed.get_world_size(group.device_group),
        "collective_backend": torch.distributed.get_backend(group.device_group),
        "communicator": type(communicator).__name__ if communicator is not None else None,
        "carriers": _carriers(group),
        "threads": torch.get_num_threads(),
        "seed": torch.initial_seed(),
        "cpus": _bound_cpus(),
    }


def _carriers(group: Any) -> list[str]:
    """What carries the sums of a group: its torch backend, or what vLLM put in its place, or beside it."""
    import torch

    communicator = group.device_communicator
    if type(getattr(communicator, "dist_module", None)).__name__ == "_CPUSHMDistributed" and group.world_size > 1:
        return ["shm"]
    custom = getattr(communicator, "ca_comm", None)
    beside = [] if custom is None or getattr(custom, "disabled", True) else ["custom_allreduce"]
    return [*beside, torch.distributed.get_backend(group.device_group)]


def _bound_cpus() -> list[int]:
    """Cores that any thread of this process may run on; only the calling thread's where /proc is missing."""
    cpus = set(os.sched_getaffinity(0))
    for task in Path("/proc/self/task").glob("[0-9]*"):
        with suppress(OSError):
            cpus |= os.sched_getaffinity(int(task.name))
    return sorted(cpus)
