"""A digest of the weights one worker holds, so that "scoring changed nothing" can be checked.

After loading, vLLM's CPU path empties unquantised linear weights and keeps them packed: either as a tensor
inside a closure, which is hashed, or behind an opaque oneDNN handle, which is not readable; int8 weights always end
there. Such a layer is covered through its answer to a fixed input instead, and counted under ``probed``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PROBE_ROWS = 4


def state_digest(model: torch.nn.Module) -> dict[str, Any]:
    """SHA-256 over names, dtypes, shapes and bytes, and what it covers. KV cache and random state are outside."""
    import torch

    digest = hashlib.sha256()
    covers = {"parameters": 0, "buffers": 0, "packed": 0, "probed": 0}
    uncovered: list[str] = []
    with torch.no_grad():
        for kind, tensors in (("parameters", model.named_parameters()), ("buffers", model.named_buffers())):
            for name, tensor in tensors:
                if tensor.numel():
                    _add(digest, name, tensor)
                    covers[kind] += 1
        for name, module in model.named_modules():
            for side, number, tensor in _adapter_tensors(module):
                _add(digest, f"{name}.{side}.{number}", tensor)
                covers["adapters"] = covers.get("adapters", 0) + 1
            if not _weight_is_hidden(module):
                continue
            packed = list(_closure_tensors(getattr(module, "cpu_linear", None)))
            if packed:
                for number, tensor in enumerate(packed):
                    _add(digest, f"{name}.packed.{number}", tensor)
                covers["packed"] += 1
            elif (answer := _probe(module)) is not None:
                _add(digest, f"{name}.probe", answer)
                covers["probed"] += 1
            else:
                uncovered.append(name)
    return {"sha256": digest.hexdigest(), "covers": covers, "uncovered": uncovered}


def _add(digest: Any, name: str, tensor: torch.Tensor) -> None:
    import torch

    digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
    data = tensor.detach().contiguous().cpu().flatten().view(torch.uint8)
    digest.update(data.numpy().tobytes())


def _adapter_tensors(module: torch.nn.Module) -> Iterator[tuple[str, int, torch.Tensor]]:
    """The factors vLLM keeps beside a layer for adapters, as plain attributes: one tensor, or one a part."""
    import torch

    for side in ("lora_a_stacked", "lora_b_stacked"):
        held = getattr(module, side, ())
        for number, tensor in enumerate((held,) if isinstance(held, torch.Tensor) else held):
            yield side, number, tensor


def _closure_tensors(function: Any) -> Iterator[torch.Tensor]:
    import torch

    for cell in getattr(function, "__closure__", None) or ():
        if isinstance(cell.cell_contents, torch.Tensor):
            yield cell.cell_contents


def _weight_is_hidden(module: torch.nn.Module) -> bool:
    """An emptied weight, or one that a quantised layer gave up when oneDNN had packed it."""
    if "weight" not in module._parameters:
        return False
    weight = module._parameters["weight"]
    return hasattr(module, "quant_method") if weight is None else not weight.numel()


def _probe(module: Any) -> torch.Tensor | None:
    """The layer's answer to fixed pseudo-random rows [PROBE_ROWS, inputs]; None where the layer cannot be asked."""
    import torch

    width = getattr(module, "input_size_per_partition", None) or getattr(module, "embedding_dim", None)
    if width is None:
        return None
    generator = torch.Generator().manual_seed(20261129)
    rows = torch.randn(PROBE_ROWS, width, generator=generator)
    if (linear := getattr(module, "cpu_linear", None)) is not None:
        answer: torch.Tensor = linear(rows.to(module.weight.dtype), module.weight, None)
        return answer
    if module._parameters["weight"] is None:
        quantised: torch.Tensor = module.quant_method.apply(module, rows.to(module.params_dtype), bias=None)
        return quantised
    return None
