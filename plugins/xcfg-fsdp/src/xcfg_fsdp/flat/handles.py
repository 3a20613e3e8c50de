"""FSDP1's wrapped modules and the handles of their flat parameters in a live model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import Factory, define

from xcfg_torch.live import Live


@define(kw_only=True)
class FlatLive(Live):
    """An open model. ``freed``: by name of a wrapped module, whether its gathered parameters were gone after the last
    forward pass.
    """

    freed: dict[str, bool] = Factory(dict)


def flat_modules(model: Any) -> Mapping[str, Any]:
    """The wrapped modules that hold parameters, by name; the root's is empty."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    wrapped = {name: module for name, module in model.named_modules() if isinstance(module, FullyShardedDataParallel)}
    return {name: module for name, module in wrapped.items() if module._handle is not None}


def handles(model: Any) -> list[Any]:
    """The handles of all flat parameters."""
    return [module._handle for module in flat_modules(model).values()]


def reshard(model: Any) -> None:
    """Free gathered and low-precision parameters, so that only this rank's shards are left."""
    for handle in handles(model):
        handle.reshard(free_unsharded_flat_param=handle.uses_sharded_strategy)
        handle.post_reshard()


def watch_freeing(live: FlatLive) -> None:
    """Note after each forward pass which modules have freed what they gathered for it; under NO_SHARD none gathers."""

    def after(model: Any, _args: tuple[Any, ...], _output: Any) -> None:
        for name, module in flat_modules(model).items():
            if module._handle.uses_sharded_strategy:
                live.freed[name] = not module._handle.flat_param._full_param_padded.untyped_storage().size()

    live.model.register_forward_hook(after)
