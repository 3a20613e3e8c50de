"""The engine-construction settings of one rollout engine, as a frozen value."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen, validators

from xcfg_vllm.kv_names import requested_name

OFFLINE, SERVER = "offline", "server"
EXECUTOR_BACKENDS = ("mp", "uni")
LOGPROBS_MODES = ("raw_logprobs", "processed_logprobs")


@frozen(kw_only=True)
class EngineSettings:
    """Everything that decides how ``vllm.LLM`` is built. Changing any of these needs a new process.

    None leaves a value to vLLM; what it chose is read back from the workers. ``kv_cache_memory_bytes`` is per worker
    and always explicit: vLLM's own default takes nearly all memory. ``lora`` is an adapter's folder, ``lora_room`` the
    rank that room is made for.
    """

    model: str
    kv_cache_memory_bytes: int = field(validator=validators.ge(1))
    tensor_parallel_size: int = field(default=1, validator=validators.ge(1))
    dtype: str = "bfloat16"
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    attention_backend: str | None = None
    enforce_eager: bool | None = None
    compile_mode: str | None = None
    enable_chunked_prefill: bool | None = None
    enable_prefix_caching: bool | None = None
    logprobs_mode: str = field(default="raw_logprobs", validator=validators.in_(LOGPROBS_MODES))
    seed: int = 0
    block_size: int | None = None
    kv_cache_blocks: int | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    trust_remote_code: bool = False
    executor_backend: str = field(default="mp", validator=validators.in_(EXECUTOR_BACKENDS))
    frontend: str = field(default=OFFLINE, validator=validators.in_((OFFLINE, SERVER)))
    lora: str | None = None
    lora_room: int = 0

    def llm_arguments(self) -> dict[str, Any]:
        """Keyword arguments for ``vllm.LLM``, without those that wire in forcing and the worker probe."""
        arguments: dict[str, Any] = {
            "model": self.model,
            "kv_cache_memory_bytes": self.kv_cache_memory_bytes,
            "tensor_parallel_size": self.tensor_parallel_size,
            "dtype": self.dtype,
            "kv_cache_dtype": requested_name(self.kv_cache_dtype),
            "logprobs_mode": self.logprobs_mode,
            "seed": self.seed,
            "distributed_executor_backend": self.executor_backend,
            "trust_remote_code": self.trust_remote_code,
        }
        chosen = {
            "quantization": self.quantization,
            "enforce_eager": self.enforce_eager,
            "enable_chunked_prefill": self.enable_chunked_prefill,
            "enable_prefix_caching": self.enable_prefix_caching,
            "block_size": self.block_size,
            "num_gpu_blocks_override": self.kv_cache_blocks,
            "max_model_len": self.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            "max_num_batched_tokens": self.max_num_batched_tokens,
        }
        arguments |= {name: value for name, value in chosen.items() if value is not None}
        if self.lora is not None:
            arguments |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": self.lora_room}
        if self.attention_backend is not None:
            arguments["attention_config"] = {"backend": self.attention_backend}
        if self.compile_mode is not None:
            arguments["compilation_config"] = {"mode": self.compile_mode}
        return arguments
