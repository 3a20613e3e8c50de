"""What one rank of FSDP holds, for its metadata."""

from __future__ import annotations

from xcfg.model.json import Json
from xcfg_fsdp.groups import fsdp_modules, param_groups, reshard
from xcfg_fsdp.live import FsdpLive
from xcfg_fsdp.policy import policies
from xcfg_torch.dtypes import dtype_name


def shard_facts(live: FsdpLive) -> dict[str, Json]:
    """Backend, mesh, policies and this rank's share of parameters and columns, nothing gathered."""
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
        mesh = groups[0].mesh_info.mesh
        facts["mesh"] = dict(zip(mesh.mesh_dim_names, mesh.shape, strict=True))
        facts["policies"] = policies(live.model)
    if live.share:
        facts["columns"] = [list(columns) for _, columns in live.passed]
    if live.head:
        facts["head_columns"] = list(live.head.bounds[live.head.rank])
    return facts
