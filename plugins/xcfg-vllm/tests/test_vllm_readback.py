"""Read-back from workers' facts written by hand: it tells what ran, also where that is not what was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from xcfg.model.capability import Unobservable
from xcfg.model.sample import TokenBatch
from xcfg_vllm.evidence import rank_info, samples_of, semantics_of
from xcfg_vllm.faults import EngineFault
from xcfg_vllm.limits import Limits
from xcfg_vllm.live import Live
from xcfg_vllm.materialize import VllmMaterializer
from xcfg_vllm.readback import READERS
from xcfg_vllm.scoring import EngineScores


class _Engine:
    forcing = "sampler_hook"
    executor = "MultiprocExecutor"
    hooks = ({"runner": "GPUModelRunner"},)

    def frontend(self) -> str:
        return "server"


def _worker(rank=0, size=1, **changed):
    layer = {"backend": "CPU_ATTN", "implementation": "Impl", "kv_storage_dtypes": ["bfloat16"], "kv_format": "auto"}
    facts = {
        "attention": {"layer.0": layer, "layer.1": dict(layer)},
        "weights": {"parameter_dtypes": {"bfloat16": 2}, "emptied_dtypes": {}, "quant_methods": {"a": "M", "b": "M"}},
        "int8_sums": None,
        "linears": {},
        "adapters": None,
        "quantization": "m",
        "compile": {
            "mode": "NONE",
            "stock_compiled": False,
            "compile_wrapped": [],
            "compiled": [],
            "cudagraph_wrapper": False,
            "cudagraph_keys": 0,
        },
        "parallel": {
            "pid": 10 + rank,
            "tp_rank": rank,
            "tp_size": size,
            "group_size": size,
            "carriers": ["gloo"],
            "threads": 1,
            "seed": 5,
        },
        "logits": {"scale": 1.0, "soft_cap": 0.0},
        "logprobs_mode": "raw_logprobs",
    }
    for name, change in changed.items():
        facts[name] = {**facts[name], **change} if isinstance(change, dict) else change
    return facts


def _meter(**changed):
    meter = {
        "max_requests": 3,
        "decoded": 7,
        "prompt_scored": 0,
        "linear_dtypes": {"bfloat16": 8},
        "head_dtypes": {"bfloat16": 2},
        "columns": [256],
        "sampling": {"temperature": [1.0], "top_p": [1.0], "top_k": [0], "min_p": [0.0]},
        "adapters": [""],
    }
    return meter | changed


CACHE = {
    "enabled": False,
    "pool_enabled": False,
    "chunked_prefill": True,
    "lookups": 3,
    "skipped": 0,
    "block_size": 32,
    "blocks": 64,
    "max_model_len": 200,
    "max_num_seqs": 16,
    "max_num_batched_tokens": 512,
}


def _live(workers=None, meters=None, *, cache=None, lengths=(4, 3, 3), batch_size=3, cached=0) -> Live:
    workers = workers or [_worker()]
    scored = EngineScores(
        logprobs=(),
        cached_tokens=(cached,) * len(lengths),
        response_lengths=lengths,
        meters=tuple(meters or [_meter() for _ in workers]),
        cache=CACHE | (cache or {}),
        path="forced_decode",
    )
    return Live(
        engine=_Engine(),
        limits=Limits(vocabulary=256, length=200),
        workers=workers,
        scored=scored,
        batch_size=batch_size,
    )


def _read(knob, *args, **kwargs):
    return VllmMaterializer().read_back(knob, _live(*args, **kwargs))


def test_values_of_one_worker() -> None:
    live = _live()
    assert {knob: read(live) for knob, read in READERS.items()} == {
        "rollout.tensor_parallel_size": 1,
        "rollout.dtype": "bfloat16",
        "rollout.quantization": "m",
        "rollout.chunked_prefill": True,
        "rollout.kv_cache_dtype": "bfloat16",
        "rollout.attention_backend": "CPU_ATTN",
        "rollout.enforce_eager": True,
        "rollout.scoring_path": "forced_decode",
        "execution.prefix_cache": False,
        "execution.threads": 1,
        "sampling.logprobs_mode": "raw_logprobs",
        "sampling.temperature": 1.0,
        "sampling.top_p": 1.0,
        "sampling.top_k": 0,
        "batch.size": 3,
        "vllm.executor_backend": "mp",
        "vllm.frontend": "server",
        "vllm.lora": None,
        "vllm.min_p": 0.0,
        "vllm.prefix_cache_state": "off",
        "vllm.seed": 5,
        "vllm.block_size": 32,
        "vllm.kv_cache_blocks": 64,
        "vllm.max_model_len": 200,
        "execution.max_num_seqs": 16,
        "execution.compile_mode": "NONE",
        "execution.collective": "gloo",
        "vllm.max_num_batched_tokens": 512,
    }


def test_nothing_is_known_before_scoring() -> None:
    live = Live(engine=_Engine(), limits=Limits(vocabulary=256, length=200))
    assert all(isinstance(read(live), Unobservable) for read in READERS.values())


def test_tensor_parallel_size_is_that_of_distinct_processes_in_one_group() -> None:
    two = [_worker(0, 2), _worker(1, 2)]
    assert _read("rollout.tensor_parallel_size", two) == 2
    for wrong in ({"group_size": 1}, {"tp_rank": 0}, {"pid": 10}):
        assert isinstance(_read("rollout.tensor_parallel_size", [two[0], _worker(1, 2, parallel=wrong)]), Unobservable)


def test_one_layer_in_lower_precision_decides() -> None:
    assert _read("rollout.dtype", meters=[_meter(linear_dtypes={"float32": 9, "bfloat16": 1})]) == "bfloat16"
    assert _read("rollout.dtype", meters=[_meter(linear_dtypes={"float8_e4m3fn": 1})]) == "float8_e4m3fn"
    assert isinstance(_read("rollout.dtype", meters=[_meter(linear_dtypes={}, head_dtypes={})]), Unobservable)


def test_layers_or_workers_that_differ_equal_no_request() -> None:
    layer = {"backend": "FLASH_ATTN", "implementation": "Impl", "kv_storage_dtypes": ["uint8"], "kv_format": "fp8"}
    mixed = [_worker(attention={"layer.1": layer})]
    assert _read("rollout.attention_backend", mixed) == "CPU_ATTN+FLASH_ATTN"
    assert _read("rollout.kv_cache_dtype", mixed) == "bfloat16+float8_e4m3fn"
    modes = [_worker(0, 2), _worker(1, 2, logprobs_mode="processed_logprobs")]
    assert _read("sampling.logprobs_mode", modes) == "processed_logprobs+raw_logprobs"
    threads = _read("execution.threads", [_worker(0, 2), _worker(1, 2, parallel={"threads": 2})])
    assert isinstance(threads, Unobservable)


@pytest.mark.parametrize(
    ("state", "observed"),
    [
        ({}, True),
        ({"compile_wrapped": ["<root>"], "compiled": ["<root>"]}, False),
        ({"cudagraph_wrapper": True, "cudagraph_keys": 3}, False),
        ({"stock_compiled": True}, False),
        ({"compile_wrapped": ["<root>"]}, Unobservable),
        ({"cudagraph_wrapper": True}, Unobservable),
    ],
)
def test_eager_or_compiled(state, observed) -> None:
    found = _read("rollout.enforce_eager", [_worker(compile=state)])
    assert isinstance(found, Unobservable) if observed is Unobservable else found is observed


@pytest.mark.parametrize(
    ("cache", "cached", "observed"),
    [
        ({}, 0, False),
        ({}, 32, Unobservable),
        ({"enabled": True, "pool_enabled": True}, 0, True),
        ({"enabled": True, "pool_enabled": False}, 0, Unobservable),
        ({"enabled": True, "pool_enabled": True, "skipped": 1}, 0, Unobservable),
        ({"enabled": True, "pool_enabled": True, "lookups": 0}, 0, Unobservable),
    ],
)
def test_prefix_cache(cache, cached, observed) -> None:
    found = _read("execution.prefix_cache", cache=cache, cached=cached)
    assert isinstance(found, Unobservable) if observed is Unobservable else found is observed


@pytest.mark.parametrize(
    ("meter", "observed"),
    [
        (
            {"decoded": 7, "prompt_scored": 0},
            "forced_decode",
        ),  # ten response tokens, the first of three come of prefill
        ({"decoded": 0, "prompt_scored": 3}, "prefill"),
        ({"decoded": 10, "prompt_scored": 0}, "mixed"),
        ({"decoded": 0, "prompt_scored": 0}, "mixed"),
    ],
)
def test_scoring_path_is_counted(meter, observed) -> None:
    assert _read("rollout.scoring_path", meters=[_meter(**meter)]) == observed


def test_batch_size() -> None:
    assert _read("batch.size", batch_size=3) == 3
    assert _read("batch.size", batch_size=8) == 8  # three sequences cannot fill it
    assert _read("batch.size", batch_size=2) == 3
    assert _read("batch.size", batch_size=8, meters=[_meter(max_requests=2)]) == 2
    two = [_worker(0, 2), _worker(1, 2)]
    assert isinstance(_read("batch.size", two, [_meter(), _meter(max_requests=1)]), Unobservable)


def test_sampling_values_are_the_samplers_and_may_not_differ_between_requests() -> None:
    sampling = {"temperature": [0.7, 1.0], "top_p": [0.9], "top_k": [5]}
    meters = [_meter(sampling=sampling)]
    assert isinstance(_read("sampling.temperature", meters=meters), Unobservable)
    assert (_read("sampling.top_p", meters=meters), _read("sampling.top_k", meters=meters)) == (0.9, 5)


@pytest.mark.parametrize(
    ("settled", "methods", "observed"),
    [
        (None, ["UnquantizedLinearMethod", "UnquantizedEmbeddingMethod", ""], "none"),
        ("compressed-tensors", ["CompressedTensorsLinearMethod/Scheme", "UnquantizedEmbeddingMethod"], None),
        (None, ["UnquantizedLinearMethod", "Fp8KVCacheMethod"], "none"),
        ("int8_per_channel_weight_only", ["UnquantizedLinearMethod"], "none"),  # taken, and no layer follows it
        (None, ["Fp8LinearMethod"], Unobservable),
    ],
)
def test_quantisation_is_what_the_layers_bear_out(settled, methods, observed) -> None:
    weights = {"quant_methods": {str(place): name for place, name in enumerate(methods)}}
    found = _read("rollout.quantization", [_worker(quantization=settled, weights=weights)])
    assert isinstance(found, Unobservable) if observed is Unobservable else found == (observed or settled)


@pytest.mark.parametrize(
    ("state", "observed"),
    [
        ({"mode": "NONE"}, "NONE"),
        ({"mode": "DYNAMO_TRACE_ONCE", "compiled": ["model"]}, "DYNAMO_TRACE_ONCE"),
        ({"mode": "STOCK_TORCH_COMPILE", "stock_compiled": True}, "STOCK_TORCH_COMPILE"),
        ({"mode": "STOCK_TORCH_COMPILE"}, "NONE"),  # taken, and nothing is compiled
        ({"mode": "DYNAMO_TRACE_ONCE", "compile_wrapped": ["model"]}, Unobservable),
        ({"mode": "NONE", "compiled": ["model"]}, Unobservable),
    ],
)
def test_compile_mode_is_what_was_compiled(state, observed) -> None:
    found = _read("execution.compile_mode", [_worker(compile=state)])
    assert isinstance(found, Unobservable) if observed is Unobservable else found == observed


def test_what_carries_the_sums_of_workers() -> None:
    shared = [_worker(rank, 2, parallel={"carriers": ["shm"]}) for rank in range(2)]
    assert _read("execution.collective", shared) == "shm"
    beside = [_worker(parallel={"carriers": ["custom_allreduce", "nccl"]})]
    assert _read("execution.collective", beside) == "custom_allreduce+nccl"


def test_semantics_of_raw_logprobs_ignore_the_temperature() -> None:
    sampling = {"temperature": [0.7], "top_p": [0.9], "top_k": [50], "min_p": [0.05]}
    raw = semantics_of(_live(meters=[_meter(sampling=sampling)]))
    assert (raw.mode, raw.temperature, raw.top_p, raw.top_k, raw.vocab_size) == ("raw", 1.0, 1.0, 0, 256)
    workers = [_worker(logprobs_mode="processed_logprobs", logits={"scale": 0.5, "soft_cap": 30.0})]
    done = semantics_of(_live(workers, [_meter(sampling=sampling)]))
    assert (done.mode, done.temperature, done.top_p, done.top_k, done.min_p) == ("processed", 0.7, 0.9, 50, 0.05)
    assert (done.logit_scale, done.logit_softcap) == (0.5, 30.0)


@pytest.mark.parametrize(
    ("cached", "enabled", "told"),
    [((64, 32), True, "warm"), ((0, 0), True, "cold"), ((64, 0), True, "mixed"), ((0, 0), False, "off")],
)
def test_the_state_of_the_prefix_cache_is_what_was_read_from_it(cached, enabled, told) -> None:
    """Prompts of 96 and 33 tokens hold two and one whole blocks of 32 before their last token."""
    live = _live(cache={"enabled": enabled}, lengths=(4, 3))
    live.scored = evolve(live.scored, cached_tokens=cached, prompt_lengths=(96, 33))
    assert READERS["vllm.prefix_cache_state"](live) == told


def test_prompts_within_a_block_are_neither_warm_nor_cold() -> None:
    live = _live(cache={"enabled": True}, lengths=(4,))
    live.scored = evolve(live.scored, cached_tokens=(0,), prompt_lengths=(32,))
    assert "no prompt fills a block of 32" in READERS["vllm.prefix_cache_state"](live).reason


def test_the_executor_is_told_by_its_class() -> None:
    live = _live()
    for name, told in (("UniProcExecutor", "uni"), ("MultiprocExecutor", "mp"), ("Strange", "Strange")):
        live.engine = _Engine()
        live.engine.executor = name
        assert READERS["vllm.executor_backend"](live) == told


def test_workers_whose_normalisers_differ() -> None:
    with pytest.raises(EngineFault, match="width of the logits"):
        semantics_of(_live([_worker(0, 2), _worker(1, 2)], [_meter(), _meter(columns=[512])]))


def test_rank_metadata() -> None:
    info = rank_info(_live([_worker(0, 2), _worker(1, 2)]))
    assert (info.rank, info.world_size, info.parallel, info.compute_dtype) == (0, 1, {"tp": 2}, "bfloat16")
    assert (info.padding_side, info.cache_mode) == ("none", "paged")
    assert info.facts["workers"][1]["quant_methods"] == ("M",)
    assert rank_info(_live(cache={"enabled": True})).cache_mode == "paged, prefix cache"


def test_samples_by_hand() -> None:
    batch = TokenBatch(
        ids=["a", "b"], prompts=[[1, 2], [3]], responses=[[4], [5, 6]], action_masks=[[True], [False, True]]
    )
    samples = samples_of(batch, [np.float32([-1.5]), np.float32([-2.5, -3.5])])
    assert samples.input_ids.tolist() == [1, 2, 4, 3, 5, 6]
    assert samples.position_ids.tolist() == [0, 1, 2, 0, 1, 2]
    assert samples.action_mask.tolist() == [True, False, True]
    assert samples.logprobs.tolist() == [-1.5, -2.5, -3.5]
    assert samples.rank.tolist() == [0, 0]
