"""Quantised checkpoints as files hold them: a linear layer's tensors and the entry in ``config.json``, by scheme."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from xcfg_vllm.testing.packing import AWQ_ORDER, packed_columns
from xcfg_vllm.testing.rtn import fp8_channels, int4_asymmetric, int4_symmetric, int8_channels

if TYPE_CHECKING:
    import torch

GROUP = 32
"""Inputs that share a 4-bit scale: divides the example's 192 and 512 inputs at tensor-parallel size 1 and 2."""

Tensors = Mapping[str, "torch.Tensor"]


@frozen(kw_only=True)
class Scheme:
    """``tensors`` of a weight [outputs, inputs] by suffix, and ``config``: the entry ``quantization_config``."""

    tensors: Callable[[torch.Tensor], Tensors]
    config: Mapping[str, Any]


def _int8(weight: torch.Tensor) -> Tensors:
    codes, scale = int8_channels(weight)
    return {"weight": codes, "weight_scale": scale}


def _fp8(weight: torch.Tensor) -> Tensors:
    codes, scale = fp8_channels(weight)
    return {"weight": codes, "weight_scale": scale}


def _w4a16(weight: torch.Tensor) -> Tensors:
    import torch

    held = int4_symmetric(weight, GROUP, torch.bfloat16)
    return {
        "weight_packed": packed_columns(held.codes),
        "weight_scale": held.scales,
        "weight_shape": torch.tensor(weight.shape, dtype=torch.int64),
    }


def _gptq(weight: torch.Tensor) -> Tensors:
    """GPTQ packs the inputs, and stores each zero point less one."""
    import torch

    held = int4_symmetric(weight, GROUP, torch.float16)
    return {
        "qweight": packed_columns(held.codes).T.contiguous(),
        "qzeros": packed_columns(held.zeros.T - 1),
        "scales": held.scales.T.contiguous(),
        "g_idx": torch.arange(weight.shape[1], dtype=torch.int32) // GROUP,
    }


def _awq(weight: torch.Tensor) -> Tensors:
    """AWQ packs the outputs, in an order of its own."""
    import torch

    held = int4_asymmetric(weight, GROUP, torch.float16)
    return {
        "qweight": packed_columns(held.codes.T, AWQ_ORDER),
        "qzeros": packed_columns(held.zeros.T, AWQ_ORDER),
        "scales": held.scales.T.contiguous(),
    }


def _compressed(form: str, weights: Mapping[str, Any], activations: Mapping[str, Any] | None) -> Mapping[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations, "output_activations": None}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
    }


def _numbers(bits: int, kind: str, strategy: str, *, dynamic: bool = False, group: int | None = None) -> dict[str, Any]:
    return {
        "num_bits": bits,
        "type": kind,
        "symmetric": True,
        "strategy": strategy,
        "dynamic": dynamic,
        "group_size": group,
    }


SCHEMES: Mapping[str, Scheme] = {
    "w8a8-int8": Scheme(
        tensors=_int8,
        config=_compressed("int-quantized", _numbers(8, "int", "channel"), _numbers(8, "int", "token", dynamic=True)),
    ),
    "w8a8-fp8": Scheme(
        tensors=_fp8,
        config=_compressed(
            "float-quantized", _numbers(8, "float", "channel"), _numbers(8, "float", "token", dynamic=True)
        ),
    ),
    "w4a16": Scheme(
        tensors=_w4a16, config=_compressed("pack-quantized", _numbers(4, "int", "group", group=GROUP), None)
    ),
    "gptq": Scheme(
        tensors=_gptq,
        config={
            "quant_method": "gptq",
            "bits": 4,
            "group_size": GROUP,
            "desc_act": False,
            "sym": True,
            "lm_head": False,
        },
    ),
    "awq": Scheme(
        tensors=_awq,
        config={
            "quant_method": "awq",
            "bits": 4,
            "group_size": GROUP,
            "zero_point": True,
            "version": "gemm",
            "modules_to_not_convert": ["lm_head"],
        },
    ),
}
"""Scheme by the name that ``xcfg-base.json`` gives it."""
