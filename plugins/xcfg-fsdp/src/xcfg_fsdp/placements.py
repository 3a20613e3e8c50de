"""Over which ranks parameters lie, read from their meshes and placements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg_fsdp.groups import fsdp_modules, param_groups, reshard
from xcfg_fsdp.live import FsdpLive
from xcfg_fsdp.mesh import REPLICATE, SHARD, TENSOR, UNSHARDED
from xcfg_torch.compiling import decoder_layers
from xcfg_torch.readback_scored import Observed

_SHARDED = frozenset({"Shard", "_StridedShard"})  # FSDP strides its shards of what is split over ranks already
_STRATEGIES = {
    (): UNSHARDED,
    ((SHARD, "Shard"),): "full_shard",
    ((REPLICATE, "Replicate"), (SHARD, "Shard")): "hybrid",
}


def dimensions(parameter: Any) -> Mapping[str, str]:
    """By name of a mesh dimension, how the parameter lies over it (``Shard``, ``Replicate``); empty where whole."""
    from torch.distributed.tensor import DTensor

    if not isinstance(parameter, DTensor):
        return {}
    names = parameter.device_mesh.mesh_dim_names or tuple(f"({axis})" for axis in range(parameter.device_mesh.ndim))
    kinds = [type(placement).__name__ for placement in parameter.placements]
    return dict(zip(names, ("Shard" if kind in _SHARDED else kind for kind in kinds), strict=True))


def sharding(live: FsdpLive) -> Observed:
    """The strategy that the placements of all parameters agree on, where FSDP holds them or, unsharded, does not."""
    reshard(live.model)
    ways = {
        tuple((name, kind) for name, kind in dimensions(parameter).items() if name != TENSOR)
        for parameter in live.model.parameters()
    }
    found = _STRATEGIES.get(ways.copy().pop()) if len(ways) == 1 else None
    wrapped = bool(fsdp_modules(live.model))
    if found is None or wrapped != (found != UNSHARDED):
        with_fsdp = "with" if wrapped else "without"
        return Unobservable(f"placements {sorted(map(str, ways))} {with_fsdp} FSDP are no known strategy")
    return found


def world_size(live: FsdpLive) -> Observed:
    """Ranks of the process group, where every mesh of a wrapped module spans all that hold a part of its layers."""
    import torch.distributed as dist

    if not dist.is_initialized():
        return Unobservable("no process group")
    size, split = dist.get_world_size(), tensor_parallel_size(live)
    if not isinstance(split, int):
        return split
    spans = {group.mesh_info.mesh.size() * split for group in param_groups(live.model)} or {size}
    return size if spans == {size} else Unobservable(f"meshes span {sorted(spans)} of {size} ranks")


def tensor_parallel_size(live: FsdpLive) -> Observed:
    """Ranks over which every linear layer, the embedding and the head are split; 1 where none is."""
    reshard(live.model)
    sizes, others = set(), set()
    for parameter in live.model.parameters():
        others |= dimensions(parameter).keys() - {SHARD, REPLICATE, TENSOR}
    if others:
        return Unobservable(f"parameters are split over {sorted(others)} as well")
    for weight in _matrices(live.model):
        kind = dimensions(weight).get(TENSOR)
        if kind not in (None, "Shard"):
            return Unobservable(f"a weight of a linear layer is a {kind} over {TENSOR} ranks")
        sizes.add(weight.device_mesh[TENSOR].size() if kind else 1)
    return sizes.pop() if len(sizes) == 1 else Unobservable(f"layers are split over {sorted(sizes)} ranks")


def parallel_degrees(live: FsdpLive) -> dict[str, int]:
    """Degree of each parallel mode: ``dp`` unsharded; ``shard`` and, in hybrid, ``replicate`` from the mesh.

    ``tp`` is there where layers are split. ``context`` ranks share rows; parameters are sharded over them too: it is
    no factor of the world beside ``shard``.
    """
    split = tensor_parallel_size(live)
    groups = param_groups(live.model)
    if groups:
        mesh = groups[0].mesh_info.mesh
        degrees = dict(zip(mesh.mesh_dim_names, mesh.shape, strict=True))
    else:
        degrees = {"dp": live.topology.data}
    if isinstance(split, int) and split > 1:
        degrees[TENSOR] = split
    return {**degrees, "context": live.topology.context} if live.share else degrees


def _matrices(model: Any) -> list[Any]:
    """Weights that tensor parallelism splits: those of linear layers and of the embedding."""
    inside = [
        module.weight
        for layer in decoder_layers(model)
        for module in layer.modules()
        if type(module).__name__ in ("Linear", "Conv1D")
    ]
    ends = [item.weight for item in (model.get_input_embeddings(), model.get_output_embeddings()) if item is not None]
    return [*inside, *ends]
