"""A digest over everything of a DeepSpeed engine that a scoring pass must leave untouched."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from xcfg_deepspeed.partition import partitions, release
from xcfg_torch.state import state_digest

if TYPE_CHECKING:
    import torch


def engine_digest(engine: Any) -> str:
    """SHA-256 of this rank's parameters, partitions, buffers, gradients, master weights and count of steps.

    Gathered parameters are let go of first. An optimizer's state is part of it: there must never be any.
    """
    import torch

    release(engine)
    state = hashlib.sha256(state_digest(engine.module).encode())
    state.update(f"steps {steps(engine)} states {optimizer_states(engine)};".encode())
    held = {**partitions(engine.module), **{f"master {at}": item for at, item in enumerate(masters(engine))}}
    for name, tensor in sorted(held.items()):
        state.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        state.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return state.hexdigest()


def steps(engine: Any) -> int:
    """Optimizer steps the engine counted; init_inference's engine can take none and counts none."""
    return int(getattr(engine, "global_steps", 0))


def masters(engine: Any) -> list[torch.Tensor]:
    """ZeRO-1 and 2's flat partitions of the optimizer's own copy of the parameters; empty for other engines."""
    return list(getattr(getattr(engine, "optimizer", None), "single_partition_of_fp32_groups", ()))


def optimizer_states(engine: Any) -> int:
    """Tensors of state that the optimizer inside ZeRO keeps, such as momenta."""
    inner = getattr(getattr(engine, "optimizer", None), "optimizer", None)
    return len(getattr(inner, "state", ()))
