"""FSDP's wrapped modules and parameter groups in a live model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fsdp_modules(model: Any) -> list[Any]:
    """The wrapped modules, the root first where it is one."""
    return list(named_fsdp_modules(model).values())


def named_fsdp_modules(model: Any) -> Mapping[str, Any]:
    """The wrapped modules by name; the root's is empty."""
    from torch.distributed.fsdp import FSDPModule

    return {name: module for name, module in model.named_modules() if isinstance(module, FSDPModule)}


def groups_of(module: Any) -> list[Any]:
    """The parameter groups of a wrapped module; torch 2.13 keeps several, earlier ones one."""
    state = module._get_fsdp_state()
    several = getattr(state, "_fsdp_param_groups", None)
    if several is not None:
        return list(several)
    return [state._fsdp_param_group] if state._fsdp_param_group is not None else []


def param_groups(model: Any) -> list[Any]:
    """The parameter groups of all wrapped modules."""
    return [group for module in fsdp_modules(model) for group in groups_of(module)]


def reshard(model: Any) -> None:
    """Free gathered parameters, so that only this rank's shards are left."""
    for module in fsdp_modules(model):
        module.reshard()
