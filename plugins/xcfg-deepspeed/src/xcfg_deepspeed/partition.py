"""ZeRO-3's parameters: whole shapes, this rank's partitions, and letting go of what was gathered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def is_partitioned(parameter: Any) -> bool:
    """Whether ZeRO-3 took the parameter over."""
    return hasattr(parameter, "ds_id")


def partitions(model: Any) -> dict[str, torch.Tensor]:
    """The partition that this rank keeps of each parameter of ZeRO-3: flat, padded to a multiple of the ranks."""
    return {name: item.ds_tensor for name, item in model.named_parameters() if is_partitioned(item)}


def whole_shape(parameter: Any) -> tuple[int, ...]:
    """The shape of a parameter before it was partitioned."""
    return tuple(parameter.ds_shape if is_partitioned(parameter) else parameter.shape)


def release(engine: Any) -> None:
    """Free gathered parameters, so that only this rank's partitions are left; nothing to do without ZeRO-3.

    Raises RuntimeError, DeepSpeed's own, where a parameter stays gathered.
    """
    partition = getattr(getattr(engine, "optimizer", None), "partition_all_parameters", None)
    if partition is not None:
        partition()
