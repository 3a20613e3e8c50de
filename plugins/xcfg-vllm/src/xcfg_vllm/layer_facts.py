"""How one worker computes each of its linear layers: method, scheme, kernel and dtypes, from the live modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcfg_vllm.meter import dtype_name

if TYPE_CHECKING:
    import torch

WIDE_ACTIVATIONS = ("W8A16", "Marlin", "CPUFp8PerTensorScaledMMLinearKernel", "CPUFp8BlockScaledMMKernel")
"""Parts of the names of kernels that multiply 8-bit weights with activations as they are."""


def linear_facts(model: torch.nn.Module) -> dict[str, dict[str, Any]]:
    """Of each linear layer and the head, by vLLM's name: what computes it, and ``form`` as checkpoints declare it.

    ``parts`` are the names that a fused layer's parts have in a checkpoint; empty for one that is not fused.
    """
    from vllm.model_executor.layers.linear import LinearBase
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    fused = getattr(model, "packed_modules_mapping", None) or {}
    facts = {}
    for name, module in model.named_modules():
        if isinstance(module, LinearBase | ParallelLMHead) and getattr(module, "quant_method", None) is not None:
            plain = name.removesuffix(".base_layer")  # which an adapter's layer wraps
            stem, _, last = plain.rpartition(".")
            facts[plain] = {
                **computed_by(module),
                "dtypes": {
                    held: dtype_name(tensor.dtype)
                    for held, tensor in module.named_parameters(recurse=False)
                    if tensor.numel()
                },
                "parts": [f"{stem}.{part}" for part in fused.get(last, ())],
            }
    return facts


def computed_by(module: Any) -> dict[str, Any]:
    """Class names of a layer's ``method``, ``scheme`` and ``kernel``, and the ``form`` they amount to."""
    method, scheme = module.quant_method, getattr(module, "scheme", None)
    holders = [item for item in (scheme, method) if item is not None]
    kernels = [getattr(item, name, None) for item in holders for name in ("kernel", "fp8_linear")]
    kernel = next((item for item in kernels if item is not None), None)
    named = {
        part: None if item is None else type(item).__name__
        for part, item in (("method", method), ("scheme", scheme), ("kernel", kernel))
    }
    return {**named, "form": _form(named, module)}


def _form(named: dict[str, str | None], module: Any) -> str:
    decider = named["scheme"] or named["method"] or ""
    if decider.startswith("Unquantized"):
        return "none"
    if getattr(module, "use_w4a8", False):
        return "w4a8"
    if decider.endswith("Int8"):
        return "w8a8-int8"
    if "Fp8" in decider:
        wide = "W8A16" in decider or any(part in (named["kernel"] or "") for part in WIDE_ACTIVATIONS)
        return "w8a16-fp8" if wide else "w8a8-fp8"
    bits = getattr(getattr(module, "scheme", None), "num_bits", None)
    bits = bits or getattr(getattr(module.quant_method, "quant_config", None), "weight_bits", None)
    return f"w{bits}a16" if bits else decider


def int8_sums(model: torch.nn.Module) -> str | None:
    """Whether this CPU's int8 products are ``exact`` or ``saturated``; None where no layer goes through oneDNN's.

    Without VNNI, oneDNN on x86 adds two products of bytes in an int16 that saturates. Tried on a product that would.
    """
    kernels = {getattr(getattr(module, "scheme", None), "kernel", None) for module in model.modules()}
    if not any(hasattr(kernel, "dnnl_handler") for kernel in kernels):
        return None
    import torch
    from vllm import _custom_ops as ops

    inputs, outputs = 64, 32
    weight = torch.full((outputs, inputs), 127, dtype=torch.int8)
    scale = torch.ones(outputs, 1)
    handler = ops.create_onednn_scaled_mm(weight.T, scale, torch.float32, True, False, 32)
    product = torch.empty(1, outputs)
    rows = torch.full((1, inputs), 127, dtype=torch.int8)
    lift = weight.T.sum(0, keepdim=True, dtype=torch.float32)
    ops.onednn_scaled_mm(handler, rows, product, torch.ones(1, 1), None, lift, None)
    return "exact" if bool((product == 127 * 127 * inputs).all()) else "saturated"
