"""What each knob writes, and what the engine is then built with."""

from __future__ import annotations

from pathlib import Path

import pytest

from xcfg.errors import InvalidInput
from xcfg.model.capability import Supported, Unsupported
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Role
from xcfg.plugin import ScorerSpec, Settings
from xcfg_vllm.environment import check_environment, process_environment, thread_binding
from xcfg_vllm.kv_names import observed_name, requested_name
from xcfg_vllm.materialize import VllmMaterializer
from xcfg_vllm.materializers import MATERIALIZERS
from xcfg_vllm.model_config import kv_cache_bytes, read_config, tensor_parallel_reason
from xcfg_vllm.scorer import engine_settings

VALUES = {
    "rollout.tensor_parallel_size": 2,
    "rollout.dtype": "float32",
    "rollout.quantization": "fp8",
    "rollout.chunked_prefill": False,
    "rollout.kv_cache_dtype": "float8_e4m3fn",
    "rollout.attention_backend": "FLASH_ATTN",
    "rollout.enforce_eager": True,
    "rollout.scoring_path": "prefill",
    "execution.prefix_cache": False,
    "execution.threads": 1,
    "sampling.logprobs_mode": "processed_logprobs",
    "sampling.temperature": 0.7,
    "sampling.top_p": 0.9,
    "sampling.top_k": 5,
    "batch.size": 4,
    "vllm.seed": 11,
    "vllm.block_size": 32,
    "vllm.kv_cache_blocks": 64,
    "vllm.max_model_len": 200,
    "execution.max_num_seqs": 16,
    "execution.compile_mode": "STOCK_TORCH_COMPILE",
    "execution.collective": "gloo",
    "vllm.max_num_batched_tokens": 512,
    "vllm.executor_backend": "uni",
    "vllm.frontend": "offline",
    "vllm.lora": "adapters/one",
    "vllm.min_p": 0.1,
    "vllm.prefix_cache_state": "cold",
}


@pytest.mark.parametrize("item", [item for item in MATERIALIZERS if not item.inapplicable], ids=lambda item: item.knob)
def test_a_value_goes_into_the_section_of_its_lifecycle(item) -> None:
    settings = Settings()
    assert VllmMaterializer().apply(item.knob, VALUES[item.knob], settings) == VALUES[item.knob]
    assert bool(settings.request) == (item.lifecycle is Lifecycle.REQUEST)
    assert bool(settings.env) == (item.lifecycle is Lifecycle.PROCESS)
    written = item.lifecycle is Lifecycle.ENGINE and item.knob != "execution.collective"  # vLLM's choice, only observed
    assert bool(settings.engine) == written


def test_the_engine_is_built_with_what_was_asked(checkpoint) -> None:
    arguments = _arguments(checkpoint, VALUES)
    assert arguments.pop("kv_cache_memory_bytes") > 0
    assert arguments == {
        "model": str(checkpoint),
        "tensor_parallel_size": 2,
        "dtype": "float32",
        "quantization": "fp8",
        "kv_cache_dtype": "fp8_e4m3",
        "enable_chunked_prefill": False,
        "compilation_config": {"mode": "STOCK_TORCH_COMPILE"},
        "attention_config": {"backend": "FLASH_ATTN"},
        "enforce_eager": True,
        "enable_prefix_caching": False,
        "logprobs_mode": "processed_logprobs",
        "seed": 11,
        "block_size": 32,
        "num_gpu_blocks_override": 64,
        "max_model_len": 200,
        "max_num_seqs": 16,
        "max_num_batched_tokens": 512,
        "trust_remote_code": False,
        "distributed_executor_backend": "uni",
        "enable_lora": True,
        "max_loras": 1,
        "max_lora_rank": 0,
    }


def test_null_is_left_to_the_engine(checkpoint) -> None:
    left = ("rollout.attention_backend", "rollout.enforce_eager", "execution.prefix_cache", "execution.max_num_seqs")
    left += ("rollout.quantization", "rollout.chunked_prefill", "execution.compile_mode")
    arguments = _arguments(checkpoint, dict.fromkeys((*left, "rollout.kv_cache_dtype", "vllm.block_size")))
    assert arguments["kv_cache_dtype"] == "auto"
    absent = {"attention_config", "enforce_eager", "enable_prefix_caching", "max_num_seqs", "block_size"}
    absent |= {"quantization", "enable_chunked_prefill", "compilation_config"}
    assert not absent & set(arguments)


def _arguments(checkpoint, values) -> dict:
    settings, materializer = Settings(), VllmMaterializer()
    for knob, value in values.items():
        materializer.apply(knob, value, settings)
    return engine_settings(
        ScorerSpec(
            role=Role.ROLLOUT,
            checkpoint=checkpoint,
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine=settings.engine,
        )
    ).llm_arguments()


@pytest.mark.parametrize("order", [1, -1])
def test_workers_get_their_threads_whichever_knob_comes_first(order, monkeypatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {2, 3, 6, 7})
    settings = Settings()
    for knob in ("execution.threads", "rollout.tensor_parallel_size")[::order]:
        VllmMaterializer().apply(knob, 2, settings)
    assert settings.env == {"OMP_NUM_THREADS": "2", "VLLM_CPU_OMP_THREADS_BIND": "2,3|6,7"}


def test_binding_by_hand() -> None:
    assert thread_binding(ranks=2, threads=1, cpus=[4, 9]) == "4|9"
    assert thread_binding(ranks=1, threads=2, cpus=[4, 9]) == "4,9"
    assert thread_binding(ranks=2, threads=2, cpus=[4, 9, 10]) == "nobind"


def test_a_process_whose_scheduler_cannot_be_read() -> None:
    check_environment(process_environment(ranks=1, threads=1))
    with pytest.raises(RuntimeError, match="VLLM_ENABLE_V1_MULTIPROCESSING must be 0"):
        check_environment({})


def test_kv_names() -> None:
    assert [requested_name(dtype) for dtype in (None, "bfloat16", "float8_e5m2")] == ["auto", "bfloat16", "fp8_e5m2"]
    assert observed_name("bfloat16", "auto") == "bfloat16"
    assert observed_name("uint8", "fp8_e4m3") == observed_name("uint8", "fp8") == "float8_e4m3fn"
    assert observed_name("float8_e5m2", "fp8_e5m2") == "float8_e5m2"


CONFIG = {
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 1024,
}
TOKEN = 2 * 4 * 2 * 32 * 2
"""Keys and values, layers, heads, head size, bytes of a bfloat16."""


def test_kv_cache_holds_sixteen_full_sequences() -> None:
    plenty = 1 << 40
    rounded = 1536  # 1024 tokens fill four blocks of 256; one may be begun, one held back
    sized = kv_cache_bytes(CONFIG, dtype="bfloat16", ranks=1, length=None, available=plenty)
    assert sized == 16 * rounded * TOKEN
    assert kv_cache_bytes(CONFIG, dtype="float32", ranks=2, length=None, available=plenty) == sized
    assert kv_cache_bytes(CONFIG, dtype="bfloat16", ranks=1, length=100, available=plenty) == 16 * 512 * TOKEN


def test_kv_cache_is_bounded_by_memory_but_holds_one_sequence() -> None:
    assert kv_cache_bytes(CONFIG, dtype="bfloat16", ranks=2, length=None, available=40_000_000) == 5_000_000
    assert kv_cache_bytes(CONFIG, dtype="bfloat16", ranks=1, length=None, available=0) == 1536 * TOKEN


def test_head_size_and_heads_by_default() -> None:
    plain = {**CONFIG, "hidden_size": 256, "num_key_value_heads": None, "head_dim": None}
    assert kv_cache_bytes(plain, dtype="bfloat16", ranks=1, length=None, available=0) == 1536 * TOKEN * 4


@pytest.mark.parametrize(
    ("ranks", "words"),
    [(1, None), (2, None), (8, None), (3, "8 attention heads"), (16, "8 attention heads")],
)
def test_heads_are_dealt_evenly(ranks, words) -> None:
    reason = tensor_parallel_reason(CONFIG, ranks)
    assert reason is None if words is None else words in reason


def test_key_value_heads_that_do_not_divide() -> None:
    config = {**CONFIG, "num_attention_heads": 12, "num_key_value_heads": 4}
    assert "4 key-value heads and 6 workers" in tensor_parallel_reason(config, 6)


def test_workers_that_do_not_fit_the_model(checkpoint) -> None:
    found = VllmMaterializer().probe("rollout.tensor_parallel_size", 3, {"checkpoint": str(checkpoint)})
    assert isinstance(found, Unsupported)
    assert "4 attention heads" in found.reason


def test_a_directory_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no model directory"):
        read_config(tmp_path / "nowhere")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InvalidInput, match="num_attention_heads"):
        kv_cache_bytes(read_config(tmp_path), dtype="bfloat16", ranks=1, length=8)


def test_the_language_model_inside_a_multimodal_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"vision_config": {}, "text_config": {"head_dim": 7}}')
    assert read_config(tmp_path) == {"head_dim": 7}


def test_attention_backends_by_vllms_own_names() -> None:
    pytest.importorskip("vllm", reason="vllm is not installed")
    probe = VllmMaterializer().probe
    assert probe("rollout.attention_backend", "FLASH_ATTN", {}) == Supported()
    found = probe("rollout.attention_backend", "FLASH_ATN", {})
    assert isinstance(found, Unsupported)
    assert "unknown attention backend 'FLASH_ATN', did you mean 'FLASH_ATTN'" in found.reason
    assert isinstance(probe("training.sharding", "unsharded", {}), Unsupported)


def _probe(knob, value, **spec):
    pytest.importorskip("vllm", reason="vllm is not installed")
    return VllmMaterializer().probe(knob, value, spec)


def test_quantisations_by_vllms_own_names(checkpoint, tmp_path: Path) -> None:
    from vllm.platforms import current_platform

    misspelt = _probe("rollout.quantization", "compressed-tensor", checkpoint=str(checkpoint))
    assert isinstance(misspelt, Unsupported)
    assert "did you mean 'compressed-tensors'" in misspelt.reason
    (tmp_path / "config.json").write_text('{"quantization_config": {"quant_method": "compressed-tensors"}}')
    held = _probe("rollout.quantization", "compressed-tensors", checkpoint=str(tmp_path))
    assert held == _probe("rollout.quantization", None, checkpoint=str(checkpoint)) == Supported()
    if current_platform.is_cpu():
        fresh = _probe("rollout.quantization", "fp8", checkpoint=str(checkpoint))
        assert isinstance(fresh, Unsupported)
        assert "no CPU kernel for fp8" in fresh.reason


@pytest.mark.parametrize(
    ("ranks", "shared", "name", "taken"),
    [
        (1, True, "gloo", True),
        (1, True, "shm", False),
        (1, True, "nccl", False),
        (2, True, "shm", True),
        (2, True, "gloo", False),
        (2, False, "gloo", True),
        (2, False, "shm", False),
    ],
)
def test_collectives_are_vllms_own_choice(ranks, shared, name, taken, monkeypatch) -> None:
    platforms = pytest.importorskip("vllm.platforms", reason="vllm is not installed")
    if not platforms.current_platform.is_cpu():
        pytest.skip("another platform makes another choice")
    monkeypatch.setattr("xcfg_vllm.capabilities._has_shared_memory", lambda: shared)
    found = _probe("execution.collective", name, knobs={"rollout.tensor_parallel_size": ranks})
    assert (found == Supported()) is taken
    assert taken or f"for {ranks} workers on this machine" in found.reason
