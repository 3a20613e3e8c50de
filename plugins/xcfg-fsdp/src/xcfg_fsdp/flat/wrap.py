"""Wrapping a Hugging Face model in FSDP1: decoder layer by decoder layer, then the root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xcfg.model.json import Json
from xcfg_fsdp.flat.strategies import plain_strategy
from xcfg_fsdp.mesh import UNSHARDED
from xcfg_fsdp.wrap import check_uniform, dtype_or_none
from xcfg_torch.compiling import decoder_layers

if TYPE_CHECKING:
    import torch
    from torch.distributed.device_mesh import DeviceMesh


def flatten_model(model: Any, mesh: DeviceMesh, *, device: torch.device, settings: Mapping[str, Json]) -> Any:
    """``model`` as FSDP1 wraps it, its parameters flat and sharded. Settings: ``sharding``, ``strategy`` (None is the
    sharding's plain one); ``dtype`` (compute), ``reduce_dtype``, ``buffer_dtype``, None keeps the own; ``cpu_offload``.

    FSDP1 prepares itself before its first forward pass, which casts buffers; here it does so at once, so that a pass
    changes nothing. Raises UnsupportedError for a model whose layers cannot be told, or that keeps modules in fp32.
    """
    from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    check_uniform(model, settings.get("dtype"))
    strategy = settings.get("strategy") or plain_strategy(settings.get("sharding") or UNSHARDED)
    wrapped = FullyShardedDataParallel(
        model,
        sharding_strategy=ShardingStrategy[strategy],
        auto_wrap_policy=ModuleWrapPolicy({type(layer) for layer in decoder_layers(model)}),
        mixed_precision=MixedPrecision(
            param_dtype=dtype_or_none(settings.get("dtype")),
            reduce_dtype=dtype_or_none(settings.get("reduce_dtype")),
            buffer_dtype=dtype_or_none(settings.get("buffer_dtype")),
        ),
        cpu_offload=CPUOffload(offload_params=bool(settings.get("cpu_offload"))),
        device_id=device,
        device_mesh=mesh,
    )
    wrapped.check_is_root()
    return wrapped
