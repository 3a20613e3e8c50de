"""What FSDP really did, read from its parameter groups, meshes and policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_fsdp.mesh import MESH_NAMES
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.live import Live
from xcfg_torch.readback import SHARED, Observed, output_dtype
from xcfg_torch.readback_scored import context_parallel_size as whole_rows


def fsdp_modules(model: Any) -> list[Any]:
    """The wrapped modules, the root first where it is one."""
    from torch.distributed.fsdp import FSDPModule

    return [module for module in model.modules() if isinstance(module, FSDPModule)]


def param_groups(model: Any) -> list[Any]:
    """FSDP's parameter groups; torch 2.13 keeps several to a module, earlier ones one."""
    groups: list[Any] = []
    for module in fsdp_modules(model):
        state = module._get_fsdp_state()
        several = getattr(state, "_fsdp_param_groups", None)
        single = [state._fsdp_param_group] if state._fsdp_param_group is not None else []
        groups += single if several is None else several
    return groups


def reshard(model: Any) -> None:
    """Free gathered parameters, so that only this rank's shards are left."""
    for module in fsdp_modules(model):
        module.reshard()


def sharding(live: Live) -> Observed:
    """``unsharded`` without wrapped modules; else what meshes and placements of all parameters agree on."""
    from torch.distributed.tensor import DTensor, Replicate, Shard

    model = live.model
    groups = param_groups(model)
    distributed = [parameter for parameter in model.parameters() if isinstance(parameter, DTensor)]
    if not groups and not distributed:
        return "unsharded"
    if len(distributed) != len(list(model.parameters())):
        return Unobservable("some parameters are distributed and some are whole")
    placements = {tuple(type(item) for item in parameter.placements) for parameter in distributed}
    meshes = {tuple(group.mesh_info.mesh.shape) for group in groups}
    if placements == {(Shard,)} and all(len(shape) == 1 for shape in meshes):
        return "full_shard"
    if placements == {(Replicate, Shard)} and all(len(shape) == 2 for shape in meshes):
        return "hybrid"
    return Unobservable(f"placements {sorted(map(str, placements))} on meshes {sorted(meshes)} are no known strategy")


def world_size(live: Live) -> Observed:
    """Ranks of the process group, where every mesh spans all of them."""
    import torch.distributed as dist

    if not dist.is_initialized():
        return Unobservable("no process group")
    size = dist.get_world_size()
    spans = {group.mesh_info.mesh.size() for group in param_groups(live.model)} or {size}
    return size if spans == {size} else Unobservable(f"meshes span {sorted(spans)} of {size} ranks")


def tensor_parallel_size(live: Live) -> Observed:
    """1 where parameters lie on FSDP's own mesh dimensions alone."""
    from torch.distributed.tensor import DTensor

    meshes = {
        tuple(item.device_mesh.mesh_dim_names or ()) for item in live.model.parameters() if isinstance(item, DTensor)
    }
    others = {name for names in meshes for name in names} - MESH_NAMES
    return Unobservable(f"parameters are split over {sorted(others)} as well") if others else 1


def context_parallel_size(live: Live) -> Observed:
    """How many times its own columns of keys each attention call had, where rows are shared; 1 where rows are whole."""
    if live.share is None or not live.seen.forwards:
        return whole_rows(live)
    ratios = {keys / queries for queries, keys in live.seen.gathered}
    ranks = ratios.pop() if len(ratios) == 1 else 0
    return int(ranks) if ranks == live.share.size else Unobservable(f"attention calls gathered {live.seen.gathered}")


def collective(live: Live) -> Observed:
    """Library of the ranks' process group."""
    import torch.distributed as dist

    return dist.get_backend() if dist.is_initialized() else Unobservable("no process group")


def reduce_dtype(live: Live) -> Observed:
    """The policy's reduce dtype, by default that of its parameters; None where nothing is wrapped, hence reduced."""
    return _agreed(live, lambda policy: policy.reduce_dtype or policy.param_dtype)


def root_output_dtype(live: Live) -> Observed:
    """Dtype of the logits the model handed on, where the root's policy, when it sets one, says the same."""
    seen = output_dtype(live)
    wrapped = [module for module in fsdp_modules(live.model) if module is live.model]
    policy = wrapped[0]._get_fsdp_state()._mp_policy if wrapped else None
    if policy is None or policy.output_dtype is None or dtype_name(policy.output_dtype) == seen:
        return seen
    return Unobservable(f"the root's policy says {dtype_name(policy.output_dtype)}, the logits were {seen}")


def master_dtype(live: Live) -> Observed:
    """Dtype of the shards this rank keeps."""
    reshard(live.model)
    return "+".join(sorted({dtype_name(parameter.dtype) for parameter in live.model.parameters()}))


def parallel_degrees(live: Live) -> dict[str, int]:
    """Degree of each parallel mode: ``dp`` unsharded; ``shard`` and, in hybrid, ``replicate`` from the mesh.

    ``context`` ranks share rows; parameters are sharded over them too: it is no factor of the world beside ``shard``.
    """
    context = {"context": live.share.size} if live.share else {}
    return {**_data_degrees(live), **context}


def _data_degrees(live: Live) -> dict[str, int]:
    import torch.distributed as dist

    groups = param_groups(live.model)
    if not groups:
        return {"dp": dist.get_world_size() // (live.share.size if live.share else 1)}
    mesh = groups[0].mesh_info.mesh
    return dict(zip(mesh.mesh_dim_names, mesh.shape, strict=True))


def shard_facts(live: Live) -> dict[str, Json]:
    """Backend, mesh, policy and this rank's share of the parameters, nothing gathered."""
    import torch.distributed as dist

    reshard(live.model)
    local = [getattr(parameter, "_local_tensor", parameter) for parameter in live.model.parameters()]
    groups = param_groups(live.model)
    facts: dict[str, Json] = {
        "collective_backend": dist.get_backend(),
        "parameter_dtypes": sorted({dtype_name(tensor.dtype) for tensor in local}),
        "wrapped_modules": len(fsdp_modules(live.model)),
        "local_elements": sum(tensor.numel() for tensor in local),
        "elements": sum(parameter.numel() for parameter in live.model.parameters()),
    }
    if groups:
        policy = groups[0].mp_policy
        facts["mesh"] = _data_degrees(live)
        facts["policy"] = {
            name: None if getattr(policy, name) is None else dtype_name(getattr(policy, name))
            for name in ("param_dtype", "reduce_dtype")
        }
    return facts


def _agreed(live: Live, read: Callable[[Any], Any]) -> Observed:
    values = {read(group.mp_policy) for group in param_groups(live.model)}
    if len(values) > 1:
        return Unobservable(f"the layers' policies differ: {sorted(map(str, values))}")
    value = values.pop() if values else None
    return None if value is None else dtype_name(value)


READERS: Mapping[str, Callable[[Any], Observed]] = {
    **SHARED,
    "training.sharding": sharding,
    "training.world_size": world_size,
    "training.tensor_parallel_size": tensor_parallel_size,
    "training.context_parallel_size": context_parallel_size,
    "training.reduce_dtype": reduce_dtype,
    "execution.collective": collective,
    "training.output_dtype": root_output_dtype,
    "fsdp.master_dtype": master_dtype,
}
"""Readers of every knob of the scorer ``fsdp``."""
