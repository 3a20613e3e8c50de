"""A digest over everything a scoring pass must leave untouched."""

from __future__ import annotations

import hashlib
from typing import Any


def state_digest(model: Any) -> str:
    """SHA-256 over names, dtypes, shapes and bytes of this rank's parameters, buffers and gradients.

    Of a sharded parameter the local shard counts. A gradient is state: scoring must not leave one.
    """
    state = hashlib.sha256()
    for name, parameter in model.named_parameters(remove_duplicate=True):
        _update(state, f"parameter {name}", parameter)
        if parameter.grad is not None:
            _update(state, f"gradient {name}", parameter.grad)
    for name, buffer in model.named_buffers(remove_duplicate=True):
        _update(state, f"buffer {name}", buffer)
    return state.hexdigest()


def _update(state: Any, name: str, tensor: Any) -> None:
    import torch

    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    state.update(f"{name} {local.dtype} {tuple(local.shape)};".encode())
    data = local.detach().cpu().contiguous().reshape(-1)
    state.update(data.view(torch.uint8).numpy())
