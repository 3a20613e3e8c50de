"""Combinations of values that FSDP has no meaning for, each with its reason."""

from __future__ import annotations

from xcfg.model.case import SideConfig
from xcfg_fsdp.context_layout import CONTIGUOUS
from xcfg_fsdp.flat.strategies import SHARDING_OF
from xcfg_fsdp.topology import division_fault

_NEEDS_FSDP = (
    "training.reduce_dtype",
    "fsdp.master_dtype",
    "fsdp.reshard_after_forward",
    "fsdp.cpu_offload",
)


def fsdp_fault(side: SideConfig) -> str:
    """Why the scorer ``fsdp`` cannot run what the side asks for; empty where it can."""
    return _division_fault(side) or _context_fault(side) or _tensor_fault(side) or _sharding_fault(side)


def fsdp1_fault(side: SideConfig) -> str:
    """Why the scorer ``fsdp1`` cannot run what the side asks for; empty where it can."""
    strategy, sharding = side.knobs.get("fsdp.strategy"), side.knobs.get("training.sharding")
    if isinstance(strategy, str) and sharding is not None and SHARDING_OF[strategy] != sharding:
        means = SHARDING_OF[strategy]
        return f"fsdp.strategy: {strategy} means training.sharding: {means}, and training.sharding is {sharding}"
    return _hybrid_fault(side, _ranks(side))


def _division_fault(side: SideConfig) -> str:
    ranks, context, tensor = _ranks(side), _size(side, "context"), _size(side, "tensor")
    fault = division_fault(ranks, context=context, tensor=tensor) if ranks else None
    return ": ".join(fault) if fault else ""


def _context_fault(side: SideConfig) -> str:
    layout = side.knobs.get("fsdp.context_layout")
    if _size(side, "context") > 1:
        compiled = side.knobs.get("training.compile")
        asks = "a compiled layer cannot gather keys, as training.context_parallel_size asks"
        return f"training.compile: {asks}" if compiled else ""
    return "" if layout in (None, CONTIGUOUS) else f"fsdp.context_layout: {layout} needs ranks that share rows"


def _tensor_fault(side: SideConfig) -> str:
    if _size(side, "tensor") > 1:
        compiled = side.knobs.get("training.compile")
        return "training.compile: layers split over ranks are scored eagerly by this scorer" if compiled else ""
    if side.knobs.get("logp.tp_layout") == "vocab-parallel":
        return "logp.tp_layout: vocab-parallel needs a training.tensor_parallel_size of at least 2"
    return ""


def _sharding_fault(side: SideConfig) -> str:
    if side.knobs.get("training.sharding") != "unsharded":
        return _hybrid_fault(side, _ranks(side) // _size(side, "tensor"))
    for name in _NEEDS_FSDP:
        if side.knobs.get(name) is not None:
            return f"{name} is part of FSDP's policy, and training.sharding: unsharded wraps nothing"
    return ""


def _hybrid_fault(side: SideConfig, ranks: int) -> str:
    if side.knobs.get("training.sharding") == "hybrid" and ranks == 1:
        return "training.sharding: hybrid replicates shards over ranks, so it needs training.world_size of at least 2"
    return ""


def _ranks(side: SideConfig) -> int:
    ranks = side.knobs.get("training.world_size")
    return ranks if isinstance(ranks, int) else 0


def _size(side: SideConfig, mode: str) -> int:
    size = side.knobs.get(f"training.{mode}_parallel_size")
    return size if isinstance(size, int) else 1
