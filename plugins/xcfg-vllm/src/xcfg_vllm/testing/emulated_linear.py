"""A linear layer computed from a quantised checkpoint's own numbers, in plain torch."""

from __future__ import annotations

import torch

from xcfg_vllm.testing.packing import AWQ_ORDER, unpacked_columns
from xcfg_vllm.testing.rtn import FP8_MAX, INT8_MAX

SMALLEST_FP8_SCALE = 1.0 / (FP8_MAX * 512.0)
"""vLLM's lower bound of a dynamic scale (``input_quant_fp8.py``)."""


class EmulatedLinear(torch.nn.Module):
    """``y = x W^T`` with ``codes`` [outputs, inputs] scaled by ``scale`` [outputs, 1], or float weights as they are.

    ``activations`` ``int8`` and ``fp8`` quantise each token's input with a scale of its own; a layer whose inputs lie
    over ``shards`` workers does so for each shard by itself, as no worker sees another's inputs. ``saturates``: int8
    products as :func:`saturated_product` sums them.
    """

    codes: torch.Tensor
    scale: torch.Tensor

    def __init__(
        self,
        codes: torch.Tensor,
        scale: torch.Tensor | None = None,
        *,
        activations: str = "",
        shards: int = 1,
        saturates: bool = False,
    ) -> None:
        super().__init__()
        self.register_buffer("codes", codes)
        self.register_buffer("scale", scale)
        self.activations = activations
        self.shards = shards
        self.saturates = saturates

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """``inputs`` [..., inputs] to [..., outputs] of the same dtype; sums are float32, exact for int8 codes."""
        if not self.activations:
            return torch.nn.functional.linear(inputs, self.codes.to(inputs.dtype))
        parts = [
            self._part(rows, codes)
            for rows, codes in zip(inputs.chunk(self.shards, -1), self.codes.chunk(self.shards, -1), strict=True)
        ]
        return torch.stack(parts).sum(0)

    def _part(self, inputs: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        rows, scales = quantised_rows(inputs, self.activations)
        product = saturated_product if self.saturates and self.activations == "int8" else torch.nn.functional.linear
        return (product(rows, codes.float()) * scales * self.scale.T).to(inputs.dtype)


def quantised_rows(inputs: torch.Tensor, form: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes as float32, and the float32 scale of each token [..., 1]."""
    held = inputs.float()
    most = held.abs().amax(-1, keepdim=True)
    if form == "int8":
        scale = most / INT8_MAX
        return (held * scale.reciprocal()).round(), scale
    scale = (most / FP8_MAX).clamp(min=SMALLEST_FP8_SCALE)
    return (held * scale.reciprocal()).clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn).float(), scale


def saturated_product(rows: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """``rows`` [..., inputs] times ``codes`` [outputs, inputs] as x86 without VNNI multiplies int8 matrices.

    Rows are lifted by 128 into unsigned bytes; each product of two neighbours is summed into an int16, which saturates
    (``vpmaddubsw``), and only these sums are exact in int32; 128 times the sum of the codes is taken off at the end.
    """
    lifted, held = (rows + 128).to(torch.int32), codes.to(torch.int32)
    products = lifted[..., None, :] * held
    pairs = products.reshape(*products.shape[:-1], -1, 2).sum(-1).clamp(-32768, 32767)
    total: torch.Tensor = (pairs.sum(-1) - 128 * held.sum(1)).float()
    return total


def emulated(tensors: dict[str, torch.Tensor], *, method: str, shards: int, saturates: bool = False) -> EmulatedLinear:
    """From a layer's tensors by suffix; ``method`` is the checkpoint's ``quant_method``. Raises KeyError."""
    if "weight_packed" in tensors:
        outputs, inputs = tensors["weight_shape"].tolist()
        codes = unpacked_columns(tensors["weight_packed"])[:outputs, :inputs] - 8
        return EmulatedLinear(_by_groups(codes, tensors["weight_scale"]))
    if method == "gptq":
        codes = unpacked_columns(tensors["qweight"].T.contiguous())
        return EmulatedLinear(_by_groups(codes, tensors["scales"].T, unpacked_columns(tensors["qzeros"]).T + 1))
    if method == "awq":
        codes, zeros = (unpacked_columns(tensors[name], AWQ_ORDER).T for name in ("qweight", "qzeros"))
        return EmulatedLinear(_by_groups(codes, tensors["scales"].T, zeros))
    codes, scale = tensors["weight"], tensors["weight_scale"]
    form = "int8" if codes.dtype is torch.int8 else "fp8"
    return EmulatedLinear(codes.float(), scale, activations=form, shards=shards, saturates=saturates)


def _by_groups(codes: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None = None) -> torch.Tensor:
    """Float32 weights [outputs, inputs] of ``codes``, with ``scales`` and ``zeros`` [outputs, groups]."""
    outputs, groups = scales.shape
    held = codes.float().reshape(outputs, groups, -1)
    if zeros is not None:
        held = held - zeros.float()[..., None]
    return (held * scales.float()[..., None]).flatten(1)
