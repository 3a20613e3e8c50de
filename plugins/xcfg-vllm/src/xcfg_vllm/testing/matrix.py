"""What vLLM makes of each value of each knob on a CPU: the table that runs are held to.

One :class:`Trial` is one engine, or none where the value is refused before one is built. Values that can share an
engine do: each is judged by its own read-back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from xcfg.model.json import Json

Outcome = Literal["applied", "refused", "substituted"]

FOUR_BITS = "cpu_gemm_wna16"


@frozen(kw_only=True)
class Expected:
    """``outcome`` of a value; ``observed`` where another one ran, ``reason``: words of the refusal or of the cause."""

    knob: str
    value: Json
    outcome: Outcome = "applied"
    observed: Json = None
    reason: str = ""


@frozen(kw_only=True)
class Trial:
    """``opened`` are values the engine is built with, ``steps`` request-time values of one scoring pass each.

    ``checkpoint`` is a scheme of :data:`~xcfg_vllm.testing.schemes.SCHEMES`, ``adapter`` makes one and asks for it;
    ``only`` is a fact of the machine that the outcome depends on.
    """

    id: str
    opened: tuple[Expected, ...] = ()
    steps: tuple[tuple[Expected, ...], ...] = field(default=((),))
    besides: Mapping[str, Json] = field(factory=dict)
    checkpoint: str = ""
    adapter: bool = False
    only: str = ""


BASELINE: Mapping[str, Json] = {
    "rollout.tensor_parallel_size": 1,
    "rollout.dtype": "float32",
    "rollout.enforce_eager": True,
    "rollout.scoring_path": "forced_decode",
    "execution.threads": 1,
    "execution.prefix_cache": False,
    "sampling.logprobs_mode": "raw_logprobs",
    "batch.size": 3,
    "vllm.max_model_len": 256,
    "vllm.executor_backend": "mp",
}
"""What a trial does not change."""


def _ran(knob: str, value: Json) -> Expected:
    return Expected(knob=knob, value=value)


def _refused(knob: str, value: Json, reason: str) -> Expected:
    return Expected(knob=knob, value=value, outcome="refused", reason=reason)


def _other(knob: str, value: Json, observed: Json, reason: str) -> Expected:
    return Expected(knob=knob, value=value, outcome="substituted", observed=observed, reason=reason)


def _alone(expected: Expected, checkpoint: str = "", only: str = "", **besides: Json) -> Trial:
    name = f"{expected.knob}={expected.value}" if not checkpoint else f"{checkpoint}"
    changed = {knob.replace("__", "."): value for knob, value in besides.items()}
    return Trial(id=name, opened=(expected,), checkpoint=checkpoint, only=only, besides=changed)


TRIALS: tuple[Trial, ...] = (
    Trial(
        id="raw, one worker in the scorer's process",
        opened=(
            _ran("rollout.tensor_parallel_size", 1),
            _ran("rollout.dtype", "float32"),
            _ran("rollout.enforce_eager", True),
            _ran("rollout.chunked_prefill", False),
            _ran("execution.prefix_cache", False),
            _ran("execution.max_num_seqs", 12),
            _ran("execution.compile_mode", "NONE"),
            _ran("execution.collective", "gloo"),
            _ran("execution.threads", 1),
            _ran("sampling.logprobs_mode", "raw_logprobs"),
            _ran("vllm.seed", 7),
            _ran("vllm.block_size", 32),
            _ran("vllm.kv_cache_blocks", 64),
            _ran("vllm.max_model_len", 256),
            _ran("vllm.max_num_batched_tokens", 512),
            _ran("vllm.executor_backend", "uni"),
            _ran("vllm.frontend", "offline"),
        ),
        steps=(
            (_ran("rollout.scoring_path", "forced_decode"), _ran("batch.size", 1)),
            (_ran("rollout.scoring_path", "prefill"), _ran("batch.size", 3)),
        ),
    ),
    Trial(
        id="processed, warm and cold",
        opened=(
            _ran("rollout.dtype", "bfloat16"),
            _ran("rollout.chunked_prefill", True),
            _ran("execution.prefix_cache", True),
            _ran("sampling.logprobs_mode", "processed_logprobs"),
            _ran("vllm.executor_backend", "mp"),
        ),
        steps=(
            (
                _ran("sampling.temperature", 0.7),
                _ran("sampling.top_p", 0.9),
                _ran("sampling.top_k", 40),
                _ran("vllm.prefix_cache_state", "warm"),
            ),
            (_ran("vllm.min_p", 0.05), _ran("vllm.prefix_cache_state", "cold")),
            (_refused("rollout.scoring_path", "prefill", "prefix cache"),),
        ),
        besides={"vllm.block_size": 32},
    ),
    Trial(
        id="two workers",
        opened=(_ran("rollout.tensor_parallel_size", 2), _ran("rollout.dtype", "float16")),
        besides={"execution.collective": None},
    ),
    Trial(id="an adapter", opened=(), adapter=True),
    Trial(
        id="served, warm and cold",
        opened=(_ran("vllm.frontend", "server"), _ran("execution.prefix_cache", True)),
        steps=((_ran("vllm.prefix_cache_state", "warm"),), (_ran("vllm.prefix_cache_state", "cold"),)),
        besides={"vllm.block_size": 32},
    ),
    _alone(_ran("rollout.quantization", "compressed-tensors"), "w8a8-int8"),
    _alone(_ran("rollout.quantization", "compressed-tensors"), "w8a8-fp8"),
    _alone(_ran("rollout.quantization", "compressed-tensors"), "w4a16", only=FOUR_BITS, rollout__dtype="bfloat16"),
    _alone(
        _other("rollout.quantization", "gptq", "auto_gptq", "vLLM takes its own name for the same files"),
        "gptq",
        only=FOUR_BITS,
        rollout__dtype="bfloat16",
    ),
    _alone(_ran("rollout.quantization", "awq"), "awq", only=FOUR_BITS, rollout__dtype="bfloat16"),
    _alone(_other("rollout.attention_backend", "FLASH_ATTN", "CPU_ATTN", "a CPU has one backend; the name is ignored")),
    _alone(
        _other("rollout.attention_backend", "FLEX_ATTENTION", "CPU_ATTN", "a CPU has one backend; the name is ignored")
    ),
    _alone(_ran("execution.compile_mode", "DYNAMO_TRACE_ONCE"), rollout__enforce_eager=False),
    _alone(
        _other("execution.compile_mode", "VLLM_COMPILE", "DYNAMO_TRACE_ONCE", "the CPU platform lowers the mode"),
        rollout__enforce_eager=False,
    ),
    _alone(
        _other("execution.compile_mode", "STOCK_TORCH_COMPILE", "NONE", "the CPU worker compiles nothing under it"),
        rollout__enforce_eager=None,
    ),
    _alone(_refused("rollout.tensor_parallel_size", 3, "do not divide one another")),
    _alone(_refused("rollout.quantization", "fp8", "no CPU kernel for fp8")),
    _alone(_refused("rollout.quantization", "int3", "unknown quantization")),
    _alone(_refused("rollout.attention_backend", "NOPE", "unknown attention backend")),
    _alone(_refused("rollout.kv_cache_dtype", "float8_e4m3fn", "AVX-512 or AMX"), only="no fp8 cache"),
    _alone(_refused("rollout.kv_cache_dtype", "float8_e5m2", "AVX-512 or AMX"), only="no fp8 cache"),
    _alone(_refused("execution.collective", "nccl", "vLLM itself chooses")),
    _alone(_refused("vllm.max_model_len", 513, "has 512 positions")),
)
"""Every trial. The model is the repository's ``qwen3-tiny`` (6 heads, 512 positions)."""
