"""What cannot be measured here, and why, known before an engine is built.

Importing this imports neither vllm nor torch.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

from xcfg.model.codec import unknown
from xcfg.model.json import Json
from xcfg_vllm.sampling_values import Sampling

FORCED_DECODE = "forced_decode"
PREFILL = "prefill"
X86 = ("x86_64", "amd64", "i686")


def path_reason(*, path: str, logprobs_mode: str, sampling: Sampling, prefix_cache: bool) -> str | None:
    """Why the scoring path cannot measure under these settings; None when it can."""
    if path not in (FORCED_DECODE, PREFILL):
        return f"unknown scoring path {path!r}: it is {FORCED_DECODE} or {PREFILL}"
    if path != PREFILL:
        return None
    if logprobs_mode != "raw_logprobs" and not sampling.neutral:
        return (
            "vLLM's prompt logprobs skip temperature, top-k, top-p and min-p, so processed logprobs "
            "do not exist on the prefill path unless all of them are neutral"
        )
    if prefix_cache:
        return "vLLM never reads the prefix cache for a request that asks for prompt logprobs"
    return None


def contradiction(knobs: Mapping[str, Json]) -> str | None:
    """Why vLLM could not run a side with these values, of which one takes the meaning from the other; else None."""
    most, size = knobs.get("execution.max_num_seqs"), knobs.get("batch.size")
    if most is not None and size is not None and most < size:
        return f"batch.size: {size} sequences cannot run together where execution.max_num_seqs is {most}"
    if knobs.get("vllm.prefix_cache_state") is not None and knobs.get("execution.prefix_cache") is False:
        return "vllm.prefix_cache_state says nothing while execution.prefix_cache is false"
    ranks = knobs.get("rollout.tensor_parallel_size", 1)
    if knobs.get("vllm.executor_backend") == "uni" and ranks > 1:
        return f"vllm.executor_backend: uni runs one worker, and rollout.tensor_parallel_size is {ranks}"
    mode = knobs.get("execution.compile_mode")
    if mode not in (None, "NONE") and knobs.get("rollout.enforce_eager") is True:
        return f"execution.compile_mode: {mode} compiles nothing while rollout.enforce_eager is true"
    return None


def collective_reason(name: str, *, ranks: int, shared_memory: bool | None = None) -> str | None:
    """Why ``ranks`` workers on this machine do not carry their collectives by ``name``; None where they do.

    vLLM chooses by platform; on a CPU several workers go through ``shared_memory`` where it has kernels for that (None:
    look whether it has).
    """
    from vllm.platforms import current_platform

    shared = _has_shared_memory() if shared_memory is None else shared_memory
    own = "shm" if shared and ranks > 1 else current_platform.dist_backend
    if name == own:
        return None
    return f"vLLM itself chooses what carries collectives, for {ranks} workers on this machine {own}"


def attention_reason(backend: str) -> str | None:
    """Why vLLM refuses this name of an attention backend; None when it knows it, whether it then uses it or not."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    known = [item.name for item in AttentionBackendEnum]
    return None if backend in known else f"to vLLM this is an {unknown('attention backend', backend, known)}"


def cpu_kv_cache_reason(
    kv_cache_dtype: str, flags: frozenset[str] | None = None, *, cpu_engine: bool | None = None
) -> str | None:
    """Why vLLM's CPU attention refuses this KV cache dtype; None when it does not or the engine is not on a CPU.

    ``kv_cache_dtype`` is vLLM's name; ``flags`` and ``cpu_engine`` None are those of this machine.
    """
    if not kv_cache_dtype.startswith("fp8") or platform.machine().lower() not in X86:
        return None
    if not (_runs_on_cpu() if cpu_engine is None else cpu_engine):
        return None
    seen = cpu_flags() if flags is None else flags
    if seen & {"avx512f", "amx_tile"}:
        return None
    return "vLLM's fp8 KV cache on an x86 CPU needs AVX-512 or AMX, and this CPU has neither"


def _has_shared_memory() -> bool:
    import torch
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    return bool(current_platform.is_cpu()) and hasattr(torch.ops._C, "init_shm_manager")


def _runs_on_cpu() -> bool:
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())


def cpu_flags() -> frozenset[str]:
    """Instruction-set flags of the first core, from ``/proc/cpuinfo``; empty where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return next((frozenset(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), frozenset())
