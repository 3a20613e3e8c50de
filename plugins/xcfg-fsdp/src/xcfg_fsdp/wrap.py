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
    ``compile`` True compiles the layers.

    The output dtype is the root's alone: inside the model it would cast what one layer hands to the next. Raises
    UnsupportedError for a model whose layers cannot be told, or that keeps modules in fp32 which FSDP would cast.
    """
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    def policy(output_dtype: str | None) -> MixedPrecisionPolicy:
        return MixedPrecisionPolicy(
            param_dtype=_dtype(settings.get("dtype")),
            reduce_dtype=_dtype(settings.get("reduce_dtype")),
            output_dtype=_dtype(output_dtype),
        )

    _check_uniform(model, settings.get("dtype"))
    if settings.get("compile"):
        compile_layers(model)
    for layer in decoder_layers(model):
        fully_shard(layer, mesh=mesh, mp_policy=policy(None))
    fully_shard(model, mesh=mesh, mp_policy=policy(settings.get("output_dtype")))


def _check_uniform(model: Any, dtype: str | None) -> None:
    kept = sorted(set(model._keep_in_fp32_modules or ()) | set(model._keep_in_fp32_modules_strict or ()))
    if kept and dtype in ("float16", "bfloat16"):
        raise UnsupportedError(
            f"{type(model).__name__} keeps {', '.join(kept)} in fp32, and FSDP would cast them to {dtype}",
            where="training.compute_dtype",
        )


def _dtype(name: str | None) -> Any:
    return None if name is None else torch_dtype(name)
