"""Layers that differ: what the readers say when one layer of one of two workers is not as the others."""

from __future__ import annotations

import copy

import pytest

from xcfg.model.capability import Unobservable
from xcfg_vllm.held import (
    attention_backend,
    collective,
    compile_mode,
    enforce_eager,
    kv_cache_dtype,
    of_workers,
    quantization,
    tensor_parallel_size,
)

INT8 = {
    "method": "CompressedTensorsLinearMethod",
    "scheme": "CompressedTensorsW8A8Int8",
    "kernel": "CPUInt8ScaledMMLinearKernel",
    "form": "w8a8-int8",
}
PLAIN = {"method": "UnquantizedLinearMethod", "scheme": None, "kernel": None, "form": "none"}
DECLARED = {
    "model.layers.0.self_attn.q_proj": "w8a8-int8",
    "model.layers.0.self_attn.k_proj": "w8a8-int8",
    "model.layers.0.self_attn.v_proj": "w8a8-int8",
    "model.layers.0.mlp.down_proj": "w8a8-int8",
    "lm_head": "none",
}


def _workers():
    """Two workers of one group that agree in everything."""
    layer = {"backend": "CPU_ATTN", "implementation": "I", "kv_storage_dtypes": ["bfloat16"], "kv_format": "auto"}
    return [
        {
            "attention": {"layer.0": dict(layer), "layer.1": dict(layer)},
            "weights": {"quant_methods": {"a": "CompressedTensorsLinearMethod"}},
            "quantization": "compressed-tensors",
            "linears": {
                "model.layers.0.self_attn.qkv_proj": {
                    **INT8,
                    "parts": [f"model.layers.0.self_attn.{part}_proj" for part in "qkv"],
                },
                "model.layers.0.mlp.down_proj": {**INT8, "parts": []},
                "lm_head": {**PLAIN, "parts": []},
            },
            "compile": {
                "mode": "DYNAMO_TRACE_ONCE",
                "stock_compiled": False,
                "compile_wrapped": ["model"],
                "compiled": ["model"],
                "cudagraph_wrapper": False,
                "cudagraph_keys": 0,
            },
            "parallel": {
                "pid": 10 + rank,
                "tp_rank": rank,
                "group_size": 2,
                "carriers": ["shm"],
                "threads": 1,
            },
        }
        for rank in (0, 1)
    ]


PLANTED = [
    (attention_backend, ("attention", "layer.1", "backend"), "FLASH_ATTN", ("CPU_ATTN", "FLASH_ATTN")),
    (kv_cache_dtype, ("attention", "layer.1", "kv_storage_dtypes"), ["float8_e5m2"], ("bfloat16", "float8_e5m2")),
    (collective, ("parallel", "carriers"), ["gloo"], ("gloo", "shm")),
    (compile_mode, ("compile", "mode"), "VLLM_COMPILE", ("DYNAMO_TRACE_ONCE", "VLLM_COMPILE")),
    (compile_mode, ("compile", "compiled"), [], ("none was compiled",)),
    (enforce_eager, ("compile", "compiled"), [], ("none was compiled",)),
    (of_workers("threads"), ("parallel", "threads"), 2, ("1", "2")),
    (tensor_parallel_size, ("parallel", "group_size"), 1, ("1", "2")),
    (tensor_parallel_size, ("parallel", "pid"), 10, ("[0, 1]",)),
]


@pytest.mark.parametrize(
    ("read", "path", "value", "named"), PLANTED, ids=lambda item: str(getattr(item, "__name__", item))
)
def test_one_layer_of_one_worker_is_enough(read, path, value, named) -> None:
    agreed = read(_workers())
    assert not isinstance(agreed, Unobservable)
    planted = copy.deepcopy(_workers())
    *way, last = path
    place = planted[1]
    for step in way:
        place = place[step]
    place[last] = value
    found = read(planted)
    assert found != agreed
    told = found.reason if isinstance(found, Unobservable) else str(found)
    assert all(name in told for name in named)


def test_layers_as_declared_are_the_method() -> None:
    assert quantization(_workers(), DECLARED) == "compressed-tensors"
    assert quantization(_workers(), {}) == "compressed-tensors"


@pytest.mark.parametrize(
    ("layer", "held", "told"),
    [
        (
            "model.layers.0.mlp.down_proj",
            PLAIN,
            "model.layers.0.mlp.down_proj on worker 1: the checkpoint declares w8a8-int8, "
            "the worker runs none (UnquantizedLinearMethod)",
        ),
        (
            "model.layers.0.self_attn.qkv_proj",
            {**INT8, "scheme": "CompressedTensorsW8A16Fp8", "kernel": "K", "form": "w8a16-fp8"},
            "model.layers.0.self_attn.q_proj on worker 1: the checkpoint declares w8a8-int8, the worker runs w8a16-fp8 "
            "(CompressedTensorsLinearMethod/CompressedTensorsW8A16Fp8/K) (and 2 more)",
        ),
        ("lm_head", INT8, "lm_head on worker 1: the checkpoint declares none, the worker runs w8a8-int8"),
    ],
)
def test_a_layer_quantised_otherwise_is_named_with_both(layer, held, told) -> None:
    workers = _workers()
    workers[1]["linears"][layer] |= held
    found = quantization(workers, DECLARED)
    assert isinstance(found, Unobservable)
    assert found.reason.startswith(told)


def test_a_declared_layer_no_worker_has_is_named() -> None:
    workers = _workers()
    del workers[0]["linears"]["model.layers.0.mlp.down_proj"]
    found = quantization(workers, DECLARED)
    assert isinstance(found, Unobservable)
    assert "down_proj on worker 0: the checkpoint declares w8a8-int8, and no layer" in found.reason
