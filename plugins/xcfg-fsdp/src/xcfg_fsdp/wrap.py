"""Wrapping a Hugging Face model in FSDP2: decoder layer by decoder layer, then the root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xcfg.errors import UnsupportedError
from xcfg.model.json import Json
from xcfg_torch.compiling import compile_layers, decoder_layers
from xcfg_torch.dtypes import torch_dtype

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


def shard_model(model: Any, mesh: DeviceMesh, *, settings: Mapping[str, Json]) -> None:
    """Shard ``model`` in place. Settings: ``dtype`` (compute), ``reduce_dtype``, ``output_dtype``; None keeps the own;
    ``reshard_after_forward``, None is torch's choice; ``cpu_offload`` and ``compile`` (the layers), True or not.

    The output dtype is the root's alone: inside the model it would cast what one layer hands to the next. Raises
    UnsupportedError for a model whose layers cannot be told, or that keeps modules in fp32 which FSDP would cast.
    """
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

    def wrap(module: Any, output_dtype: Json) -> None:
        fully_shard(
            module,
            mesh=mesh,
            reshard_after_forward=settings.get("reshard_after_forward"),
            mp_policy=MixedPrecisionPolicy(
                param_dtype=dtype_or_none(settings.get("dtype")),
                reduce_dtype=dtype_or_none(settings.get("reduce_dtype")),
                output_dtype=dtype_or_none(output_dtype),
            ),
            offload_policy=offload,
        )

    check_uniform(model, settings.get("dtype"))
    pinned = settings.get("cpu_offload") and mesh.device_type == "cuda"
    offload = CPUOffloadPolicy(pin_memory=bool(pinned)) if settings.get("cpu_offload") else OffloadPolicy()
    if settings.get("compile"):
        compile_layers(model)
    for layer in decoder_layers(model):
        wrap(layer, None)
    wrap(model, settings.get("output_dtype"))


def check_uniform(model: Any, dtype: Json) -> None:
    """Raise UnsupportedError for a model that keeps modules in fp32 where FSDP would cast them to ``dtype``."""
    kept = sorted(set(model._keep_in_fp32_modules or ()) | set(model._keep_in_fp32_modules_strict or ()))
    if kept and dtype in ("float16", "bfloat16"):
        raise UnsupportedError(
            f"{type(model).__name__} keeps {', '.join(kept)} in fp32, and FSDP would cast them to {dtype}",
            where="training.compute_dtype",
        )


def dtype_or_none(name: Json) -> Any:
    """The torch dtype of that name; None for None."""
    return None if name is None else torch_dtype(name)
