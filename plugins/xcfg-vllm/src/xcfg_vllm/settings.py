"""The engine-construction settings of one rollout engine, as a frozen value."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen, validators

MIB = 1 << 20
LOGPROBS_MODES = ("raw_logprobs", "processed_logprobs")


@frozen(kw_only=True)
class EngineSettings:
    """Everything that decides how `vllm.LLM` is built. Changing any of these needs a new process.

    `kv_cache_memory_bytes` is per worker and always explicit: vLLM's own default takes nearly all memory.
    `attention_backend` None leaves the choice to vLLM; what it chose is read back from the workers.
    `extra` goes to `vllm.LLM` as it is and may not repeat a field of this class.
    """

    model: str
    tensor_parallel_size: int = field(default=1, validator=validators.ge(1))
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    attention_backend: str | None = None
    quantization: str | None = None
    enforce_eager: bool = True
    enable_prefix_caching: bool = False
    logprobs_mode: str = field(default="raw_logprobs", validator=validators.in_(LOGPROBS_MODES))
    max_model_len: int = field(default=1024, validator=validators.ge(2))
    max_num_seqs: int = field(default=256, validator=validators.ge(1))
    seed: int = 0
    trust_remote_code: bool = False
    kv_cache_memory_bytes: int = field(default=256 * MIB, validator=validators.ge(MIB))
    extra: dict[str, Any] = field(factory=dict)

    def llm_arguments(self) -> dict[str, Any]:
        """Keyword arguments for `vllm.LLM`, without those that wire in forcing and the worker probe."""
        arguments: dict[str, Any] = {
            "model": self.model,
            "tensor_parallel_size": self.tensor_parallel_size,
            "dtype": self.dtype,
            "kv_cache_dtype": self.kv_cache_dtype,
            "quantization": self.quantization,
            "enforce_eager": self.enforce_eager,
            "enable_prefix_caching": self.enable_prefix_caching,
            "logprobs_mode": self.logprobs_mode,
            "max_model_len": self.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            "seed": self.seed,
            "trust_remote_code": self.trust_remote_code,
            "kv_cache_memory_bytes": self.kv_cache_memory_bytes,
        }
        if self.attention_backend is not None:
            arguments["attention_config"] = {"backend": self.attention_backend}
        repeated = sorted(arguments.keys() & self.extra.keys())
        if repeated:
            raise ValueError(f"extra repeats {', '.join(repeated)}: set the field of that name instead")
        return arguments | self.extra
