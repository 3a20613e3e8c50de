"""The kit's checks of every materializer, against an engine that does what its arguments say.

It stands in for vLLM between the two halves of a materializer: it is given what ``vllm.LLM`` would be built with, and
answers in the facts that workers report, by vLLM's own names. Real engines are in test_vllm_engine_conformance.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from attrs import evolve

from xcfg.model.scorer import Role
from xcfg.plugin import ScorerSpec, Settings
from xcfg.plugin.registry import load_registry
from xcfg.testing.materializer_tests import MaterializerTests
from xcfg_vllm.materialize import VllmMaterializer
from xcfg_vllm.materializers import MATERIALIZERS
from xcfg_vllm.scorer import engine_settings

from .test_vllm_readback import _live, _meter, _worker

current_platform = pytest.importorskip("vllm.platforms", reason="vllm is not installed").current_platform

STORED = {"auto": "bfloat16", "bfloat16": "bfloat16", "float16": "float16"}
EXECUTORS = {"mp": "MultiprocExecutor", "uni": "UniProcExecutor"}
COMPILED = {
    "NONE": {},
    "STOCK_TORCH_COMPILE": {"stock_compiled": True},
    "VLLM_COMPILE": {"compile_wrapped": ["model"], "compiled": ["model"]},
}
LENGTHS = (4, 3, 3)
"""Response tokens of three sequences, whose first tokens come out of prefill."""


def engine(asked, request, variables):
    """The live handle of an engine built with ``asked``, after it has scored as ``request`` says."""
    arguments = asked.llm_arguments()
    ranks = arguments["tensor_parallel_size"]
    parallel = {"seed": arguments["seed"], "carriers": ["shm" if ranks > 1 else "gloo"]}
    parallel["threads"] = int(variables.get("OMP_NUM_THREADS", 1))
    mode = "NONE" if arguments.get("enforce_eager") else arguments.get("compilation_config", {"mode": "VLLM_COMPILE"})
    mode = mode if isinstance(mode, str) else mode["mode"]
    layer = {
        "backend": arguments.get("attention_config", {"backend": "CPU_ATTN"})["backend"],
        "implementation": "Impl",
        "kv_storage_dtypes": [STORED[arguments["kv_cache_dtype"]]],
        "kv_format": arguments["kv_cache_dtype"],
    }
    made = {
        "attention": {"layer.0": layer, "layer.1": layer},
        "compile": {"mode": mode, **COMPILED[mode]},
        "logprobs_mode": arguments["logprobs_mode"],
        "quantization": None,
        "weights": {"quant_methods": {"a": "UnquantizedLinearMethod"}},
    }
    decoded = sum(LENGTHS) - len(LENGTHS)
    forced = request.get("path", "forced_decode") == "forced_decode"
    drawn = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
    size = request.get("batch_size", 3)
    meter = _meter(
        max_requests=min(size, len(LENGTHS)),
        decoded=decoded if forced else 0,
        prompt_scored=0 if forced else len(LENGTHS),
        linear_dtypes={arguments["dtype"]: 8},
        head_dtypes={arguments["dtype"]: 2},
        sampling={name: [request.get(name, value)] for name, value in drawn.items()},
    )
    cache = {
        "chunked_prefill": arguments.get("enable_chunked_prefill", True),
        "enabled": arguments.get("enable_prefix_caching", True),
        "pool_enabled": arguments.get("enable_prefix_caching", True),
        "block_size": arguments.get("block_size", 32),
        "blocks": arguments.get("num_gpu_blocks_override", 64),
        "max_model_len": arguments.get("max_model_len", 256),
        "max_num_seqs": arguments.get("max_num_seqs", 8),
        "max_num_batched_tokens": arguments.get("max_num_batched_tokens", 512),
    }
    workers = [_worker(rank, ranks, **(made | {"parallel": parallel})) for rank in range(ranks)]
    live = _live(workers, [meter] * ranks, cache=cache, lengths=LENGTHS, batch_size=size)
    warm = cache["enabled"] and request.get("prefix_cache_state") != "cold"
    live.scored = evolve(live.scored, prompt_lengths=(96, 96, 96), cached_tokens=(64 if warm else 0,) * 3)
    live.engine = SimpleNamespace(
        executor=EXECUTORS[arguments["distributed_executor_backend"]], frontend=lambda: asked.frontend
    )
    return live


class _Vllm(MaterializerTests):
    beside = {}

    @pytest.fixture(autouse=True)
    def _tiny(self, checkpoint):
        self.checkpoint = checkpoint
        self.probe_spec = {"role": "rollout", "checkpoint": str(checkpoint), "knobs": self.beside}

    def make_materializer(self):
        return VllmMaterializer()

    @contextmanager
    def running(self, settings):
        draft = Settings()
        for knob, value in self.beside.items():
            self.make_materializer().apply(knob, value, draft)
        spec = ScorerSpec(
            role=Role.ROLLOUT,
            checkpoint=self.checkpoint,
            trust_remote_code=False,
            rank=0,
            world_size=1,
            engine={**draft.engine, **settings.engine},
        )
        yield engine(engine_settings(spec), {**draft.request, **settings.request}, {**draft.env, **settings.env})


def same(*values):
    return {"values": {value: value for value in values}}


ON_CPU = {"values": {"gloo": "gloo", None: "gloo"}, "unsupported": ("nccl",)}
CASES = {
    "rollout.tensor_parallel_size": {**same(1, 2), "unsupported": (3,)},
    "rollout.dtype": same("float32", "bfloat16", "float16"),
    "rollout.quantization": {"values": {None: "none"}, "unsupported": ("compressed-tensor",)},
    "rollout.kv_cache_dtype": {"values": {None: "bfloat16", "bfloat16": "bfloat16"}},
    "rollout.attention_backend": {**same("FLASH_ATTN", "TRITON_ATTN"), "unsupported": ("FLASH_ATN",)},
    "rollout.enforce_eager": {"values": {True: True, False: False, None: False}},
    "rollout.chunked_prefill": {"values": {True: True, False: False, None: None}},
    "rollout.scoring_path": same("forced_decode", "prefill"),
    "execution.prefix_cache": {"values": {True: True, False: False, None: None}},
    "execution.max_num_seqs": {"values": {16: 16, 12: 12, None: None}},
    "execution.compile_mode": same("NONE", "STOCK_TORCH_COMPILE", "VLLM_COMPILE"),
    "execution.collective": ON_CPU if current_platform.is_cpu() else {"values": {None: None}},
    "execution.threads": same(1, 2),
    "sampling.logprobs_mode": same("raw_logprobs", "processed_logprobs"),
    "sampling.temperature": same(0.7, 1.0),
    "sampling.top_p": same(0.9, 1.0),
    "sampling.top_k": same(5, 0),
    "batch.size": same(1, 2, 8),
    "vllm.seed": same(0, 11),
    "vllm.block_size": {"values": {16: 16, 128: 128, None: None}},
    "vllm.kv_cache_blocks": {"values": {32: 32, 100: 100, None: None}},
    "vllm.max_model_len": {"values": {100: 100, 200: 200, None: None}, "unsupported": (100_000,)},
    "vllm.max_num_batched_tokens": {"values": {256: 256, 1024: 1024, None: None}},
    "vllm.executor_backend": same("mp", "uni"),
    "vllm.frontend": same("offline", "server"),
    "vllm.lora": {"values": {None: None}, "none_is_a_value": True},
    "vllm.min_p": same(0.1, 0.0),
    "vllm.prefix_cache_state": {**same("warm", "cold"), "beside": {"execution.prefix_cache": True}},
}
ROWS = {row.knob: row for row in MATERIALIZERS}


def _checks(knob, members):
    name = "TestVllm_" + knob.replace(".", "_")
    known = {"knob": load_registry().knobs()[knob], "descriptor": ROWS[knob], "__module__": __name__}
    return name, type(name, (_Vllm,), {**known, **members})


globals().update(dict(_checks(knob, members) for knob, members in CASES.items()))
