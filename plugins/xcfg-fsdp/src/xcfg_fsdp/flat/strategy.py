"""Over which ranks FSDP1 divides its flat parameters, read from their handles and process groups."""

from __future__ import annotations

from typing import Any

from xcfg.model.capability import Unobservable
from xcfg_fsdp.flat.handles import FlatLive, flat_modules, handles
from xcfg_fsdp.flat.strategies import FREES_LAYERS, SHARDING_OF
from xcfg_torch.readback_scored import NOT_SCORED, Observed


def strategy(live: FlatLive) -> Observed:
    """The strategy of every handle, by torch's name, where sizes of shards and what was freed bear it out.

    Torch puts NO_SHARD in the place of any strategy where the group of a shard has one rank.
    """
    found = {handle._sharding_strategy.name for handle in handles(live.model)}
    if len(found) != 1:
        return Unobservable(f"the wrapped modules have strategies {sorted(found)}")
    name: str = found.pop()
    if not live.seen.forwards:
        return NOT_SCORED
    layers = {freed for module, freed in live.freed.items() if module}
    if name != "NO_SHARD" and layers != {name in FREES_LAYERS}:
        return Unobservable(f"layers freed their parameters after a pass: {sorted(layers)}, under {name}")
    whole = all(
        local_elements(handle) >= handle.flat_param._unpadded_unsharded_size.numel() for handle in handles(live.model)
    )
    if whole != (name == "NO_SHARD"):
        return Unobservable(f"this rank holds {'whole' if whole else 'parts of'} flat parameters, under {name}")
    return name


def sharding(live: FlatLive) -> Observed:
    """The sharding of parameters that the strategy in force means."""
    name = strategy(live)
    return SHARDING_OF[name] if isinstance(name, str) else name


def world_size(live: FlatLive) -> Observed:
    """Ranks of the process group, where the groups of every wrapped module span all of them."""
    import torch.distributed as dist

    size = dist.get_world_size()
    spans = {_shards(module) * _replicas(module) for module in flat_modules(live.model).values()}
    return size if spans == {size} else Unobservable(f"groups span {sorted(spans)} of {size} ranks")


def whole_layers(live: FlatLive) -> Observed:
    """1: a flat parameter is split by place, never by what it holds, so each gathered layer is whole."""
    from torch.distributed.tensor import DTensor

    split = any(isinstance(parameter, DTensor) for parameter in live.model.parameters())
    return Unobservable("a parameter is distributed, which this scorer never does") if split else 1


def parallel_degrees(live: FlatLive) -> dict[str, int]:
    """``shard`` and, in hybrid, ``replicate`` from the groups; ``dp`` where every rank has whole copies."""
    module = live.model
    if module._handle is None or not module._handle.uses_sharded_strategy:
        return {"dp": _shards(module) * _replicas(module)}
    replicas = {"replicate": _replicas(module)} if _replicas(module) > 1 else {}
    return {**replicas, "shard": _shards(module)}


def local_elements(handle: Any) -> int:
    """Elements of the shard this rank keeps of a flat parameter, padding included."""
    return int(handle.flat_param._local_shard.numel())


def _shards(module: Any) -> int:
    return int(module.process_group.size())


def _replicas(module: Any) -> int:
    group = getattr(module, "_inter_node_pg", None)
    return 1 if group is None else int(group.size())
