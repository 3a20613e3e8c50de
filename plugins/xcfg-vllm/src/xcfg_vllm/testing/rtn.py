"""Round-to-nearest quantisation of one weight matrix [outputs, inputs]: no calibration, always the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    import torch

INT8_MAX = 127
FP8_MAX = 448.0
"""The largest float8_e4m3fn."""


@frozen(kw_only=True, eq=False)
class Grouped:
    """``codes`` [outputs, inputs] int32 from 0 to 15, ``scales`` and ``zeros`` [outputs, groups]: w = (q - z) * s."""

    codes: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor


def int8_channels(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Symmetric int8 [outputs, inputs] and a float32 scale of each output [outputs, 1]."""
    import torch

    held = weight.float()
    scale = held.abs().amax(dim=1, keepdim=True) / INT8_MAX
    return (held / scale).round().clamp(-INT8_MAX, INT8_MAX).to(torch.int8), scale


def fp8_channels(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """float8_e4m3fn [outputs, inputs] and a float32 scale of each output [outputs, 1]."""
    import torch

    held = weight.float()
    scale = held.abs().amax(dim=1, keepdim=True) / FP8_MAX
    return (held / scale).clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn), scale


def int4_symmetric(weight: torch.Tensor, group: int, scale_dtype: torch.dtype) -> Grouped:
    """Zero point 8; the scale is rounded to ``scale_dtype`` before the codes are chosen."""
    held = _grouped(weight, group)
    scales = (held.abs().amax(dim=2) / 7).to(scale_dtype)
    codes = (held / scales.float()[..., None]).round().clamp(-8, 7) + 8
    return Grouped(codes=codes.flatten(1).int(), scales=scales, zeros=(scales * 0 + 8).int())


def int4_asymmetric(weight: torch.Tensor, group: int, scale_dtype: torch.dtype) -> Grouped:
    """The range of each group, which always holds 0, on 0 to 15."""
    held = _grouped(weight, group)
    low, high = held.amin(dim=2).clamp(max=0), held.amax(dim=2).clamp(min=0)
    scales = ((high - low) / 15).to(scale_dtype)
    zeros = (-low / scales.float()).round().clamp(0, 15)
    codes = ((held / scales.float()[..., None]).round() + zeros[..., None]).clamp(0, 15)
    return Grouped(codes=codes.flatten(1).int(), scales=scales, zeros=zeros.int())


def _grouped(weight: torch.Tensor, group: int) -> torch.Tensor:
    outputs, inputs = weight.shape
    if inputs % group:
        raise ValueError(f"{inputs} inputs do not fall into groups of {group}")
    return weight.float().reshape(outputs, inputs // group, group)
