"""A digest of the weights one worker holds, so that "scoring changed nothing" can be checked.

After loading, vLLM's CPU path empties unquantised linear weights and keeps them packed: either as a tensor
inside a closure, which is hashed, or behind an opaque oneDNN handle, which is not readable. Such a layer is
covered through its answer to a fixed input instead, and counted under ``probed``.
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
            weight = getattr(module, "weight", None)
            if weight is None or weight.numel():
                continue
            linear = getattr(module, "cpu_linear", None)
            packed = list(_closure_tensors(linear))
            if packed:
                for number, tensor in enumerate(packed):
                    _add(digest, f"{name}.packed.{number}", tensor)
                covers["packed"] += 1
            elif (answer := _probe(module, linear, weight.dtype)) is not None:
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


def _closure_tensors(function: Any) -> Iterator[torch.Tensor]:
    import torch

    for cell in getattr(function, "__closure__", None) or ():
        if isinstance(cell.cell_contents, torch.Tensor):
            yield cell.cell_contents


def _probe(module: torch.nn.Module, linear: Any, dtype: torch.dtype) -> torch.Tensor | None:
    """The layer's answer to fixed pseudo-random rows [PROBE_ROWS, inputs]; None where the layer cannot be asked."""
    import torch

    width = getattr(module, "input_size_per_partition", None) or getattr(module, "embedding_dim", None)
    if linear is None or width is None:
        return None
    generator = torch.Generator().manual_seed(20261129)
    rows = torch.randn(PROBE_ROWS, width, generator=generator).to(dtype)
    answer: torch.Tensor = linear(rows, module.weight, None)
    return answer
