"""The handle that this scorer gives to read-back."""

from __future__ import annotations

from typing import Any

from attrs import define

from xcfg.model.json import Json
from xcfg_megatron.geometry import Geometry
from xcfg_torch.live import Live

PROJECTIONS = ("ColumnParallelLinear", "RowParallelLinear")
"""Ends of the class names of Megatron's linear layers, its own and Transformer Engine's."""

SUMMED = "RowParallelLinear"
"""Of these the ones whose outputs are sums over tensor-parallel ranks."""


@define(kw_only=True)
class MegatronLive(Live):
    """Besides: the checkpoint's sizes, the multiple its head is padded to, and what kernels were told of their shards.

    ``kernel`` is the last request for a logprob kernel: vocabulary size and sharding.
    """

    shape: Geometry
    multiple: int
    sections: dict[str, str]
    kernel: Any = None

    @property
    def gpt(self) -> Any:
        """Megatron's own model."""
        return self.model.gpt

    def substitutions(self) -> dict[str, Json]:
        """Classes of Megatron's, each with the class whose modules stand in for it in the live model."""
        kinds = {type(module) for module in self.gpt.modules()}
        ours = sorted((kind for kind in kinds if hasattr(kind, "stands_in_for")), key=lambda kind: kind.__name__)
        return {kind.stands_in_for: f"{kind.__module__}.{kind.__name__}" for kind in ours}


def watch_projections(live: MegatronLive) -> None:
    """Note the dtypes of what enters Megatron's linear layers, and of what their ranks summed."""
    from xcfg_torch.dtypes import dtype_name

    def before(_module: Any, args: tuple[Any, ...]) -> None:
        live.seen.activations.add(dtype_name(args[0].dtype))

    def after(_module: Any, _args: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        live.seen.summed.add(dtype_name(output[0].dtype))

    for module in live.gpt.modules():
        if type(module).__name__.endswith(PROJECTIONS):
            module.register_forward_pre_hook(before)
        if type(module).__name__.endswith(SUMMED):
            module.register_forward_hook(after)
