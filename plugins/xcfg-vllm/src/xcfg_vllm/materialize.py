"""Applies knobs to the scorer ``vllm``: each is one entry in the draft of settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xcfg.model.capability import Capability, Supported, Unobservable, Unsupported
from xcfg.model.json import Json
from xcfg.plugin import Settings
from xcfg_vllm.capabilities import attention_reason, collective_reason, cpu_kv_cache_reason
from xcfg_vllm.environment import THREADS, thread_environment
from xcfg_vllm.kv_names import requested_name
from xcfg_vllm.model_config import length_reason, read_config, tensor_parallel_reason
from xcfg_vllm.quantization import dtype_reason, quantization_reason
from xcfg_vllm.readback import READERS
from xcfg_vllm.sampling_values import KNOB_OF_VALUE

ENGINE_KEYS: Mapping[str, str] = {
    "rollout.tensor_parallel_size": "tensor_parallel_size",
    "rollout.dtype": "dtype",
    "rollout.quantization": "quantization",
    "rollout.kv_cache_dtype": "kv_cache_dtype",
    "rollout.attention_backend": "attention_backend",
    "rollout.enforce_eager": "enforce_eager",
    "rollout.chunked_prefill": "enable_chunked_prefill",
    "execution.prefix_cache": "enable_prefix_caching",
    "execution.max_num_seqs": "max_num_seqs",
    "execution.compile_mode": "compile_mode",
    "sampling.logprobs_mode": "logprobs_mode",
    "vllm.seed": "seed",
    "vllm.block_size": "block_size",
    "vllm.kv_cache_blocks": "kv_cache_blocks",
    "vllm.max_model_len": "max_model_len",
    "vllm.max_num_batched_tokens": "max_num_batched_tokens",
    "vllm.executor_backend": "executor_backend",
    "vllm.frontend": "frontend",
    "vllm.lora": "lora",
}
"""Knob to field of :class:`xcfg_vllm.settings.EngineSettings`."""

REQUEST_KEYS: Mapping[str, str] = {
    "rollout.scoring_path": "path",
    **{knob: name for name, knob in KNOB_OF_VALUE.items()},
    "batch.size": "batch_size",
    "vllm.prefix_cache_state": "prefix_cache_state",
}


class VllmMaterializer:
    """Materializer of every knob of the scorer ``vllm``."""

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Unsupported with vLLM's own reason where it would refuse the value while building.

        A value that vLLM takes and then ignores is supported here: only read-back can tell.
        """
        if knob not in READERS:
            return Unsupported(f"{knob} is not a knob of this scorer")
        reason = None
        if value is not None and knob == "rollout.kv_cache_dtype":
            reason = cpu_kv_cache_reason(requested_name(value))
        elif value is not None and knob == "rollout.attention_backend":
            reason = attention_reason(value)
        elif knob == "rollout.quantization":
            reason = quantization_reason(value, spec.get("checkpoint"))
        elif knob == "rollout.dtype":
            reason = dtype_reason(value, spec.get("checkpoint"))
        elif knob == "vllm.max_model_len" and spec.get("checkpoint"):
            reason = length_reason(read_config(Path(spec["checkpoint"])), value)
        elif value is not None and knob == "execution.collective":
            reason = collective_reason(value, ranks=spec.get("knobs", {}).get("rollout.tensor_parallel_size", 1))
        elif knob == "rollout.tensor_parallel_size" and spec.get("checkpoint"):
            reason = tensor_parallel_reason(read_config(Path(spec["checkpoint"])), value)
        return Unsupported(reason) if reason else Supported()

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Write ``value`` into the draft and return it; None leaves the choice to vLLM. Raises KeyError."""
        if knob == "execution.collective":
            return value  # vLLM's own choice, which :meth:`probe` has found to be this one
        if knob == "execution.threads":
            _bind(settings, threads=value)
        elif knob in REQUEST_KEYS:
            settings.request[REQUEST_KEYS[knob]] = value
        else:
            settings.engine[ENGINE_KEYS[knob]] = value
            if knob == "rollout.tensor_parallel_size" and THREADS in settings.env:
                _bind(settings, threads=int(settings.env[THREADS]))
        return value

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """The value in force, from the workers and the live scheduler."""
        return READERS[knob](live)


def _bind(settings: Settings, *, threads: int) -> None:
    """Threads and ranks may come in either order, and the cores of a worker depend on both."""
    ranks = settings.engine.get("tensor_parallel_size", 1)
    settings.env.update(thread_environment(ranks=ranks, threads=threads))
