"""Wrapping a Hugging Face model in FSDP2: decoder layer by decoder layer, then the root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xcfg.errors import UnsupportedError
from xcfg.model.json import Json
from xcfg_torch.dtypes import torch_dtype

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


def shard_model(model: Any, mesh: DeviceMesh, *, settings: Mapping[str, Json]) -> None:
    """Shard ``model`` in place. Settings: ``dtype`` (compute), ``reduce_dtype``, ``output_dtype``; None keeps the own.

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
    for layer in decoder_layers(model):
        fully_shard(layer, mesh=mesh, mp_policy=policy(None))
    fully_shard(model, mesh=mesh, mp_policy=policy(settings.get("output_dtype")))


def decoder_layers(model: Any) -> list[Any]:
    """The modules that the model says must stay whole, outermost first. Raises UnsupportedError where it names none."""
    names = set(model._no_split_modules or ())
    layers = [module for module in model.modules() if type(module).__name__ in names]
    if not layers:
        raise UnsupportedError(f"{type(model).__name__} does not say which modules are its layers (_no_split_modules)")
    return layers


def _check_uniform(model: Any, dtype: str | None) -> None:
    kept = sorted(set(model._keep_in_fp32_modules or ()) | set(model._keep_in_fp32_modules_strict or ()))
    if kept and dtype in ("float16", "bfloat16"):
        raise UnsupportedError(
            f"{type(model).__name__} keeps {', '.join(kept)} in fp32, and FSDP would cast them to {dtype}",
            where="training.compute_dtype",
        )


def _dtype(name: str | None) -> Any:
    return None if name is None else torch_dtype(name)
