"""Loading, splitting and sharding a model on its place among the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import asdict

from xcfg.plugin import ScorerSpec
from xcfg_fsdp.context import share_columns
from xcfg_fsdp.context_layout import CONTIGUOUS
from xcfg_fsdp.live import FsdpLive
from xcfg_fsdp.mesh import TENSOR, UNSHARDED, context_group, data_mesh, mesh_of
from xcfg_fsdp.residence import watch_residence
from xcfg_fsdp.share import ContextShare
from xcfg_fsdp.tensor import head_share, split_model
from xcfg_fsdp.topology import Topology, topology_of
from xcfg_fsdp.wrap import shard_model
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.live import Live
from xcfg_torch.loading import load_model
from xcfg_torch.observe import observe
from xcfg_torch.scorer import open_whole

if TYPE_CHECKING:
    import torch
    from torch.distributed.device_mesh import DeviceMesh


def open_live(spec: ScorerSpec, device: torch.device) -> FsdpLive:
    """A hooked model as the engine settings say: those of ``open_whole`` and ``shard_model``, ``sharding``,
    ``master_dtype``, ``tensor_parallel`` with ``tp_layout``, ``context_parallel`` with ``context_layout``.

    Raises UnsupportedError for a model or a number of ranks that cannot be divided so.
    """
    engine = spec.engine
    topology = topology_of(spec.world_size, engine)
    sharding = engine.get("sharding") or UNSHARDED
    mesh = mesh_of(sharding, topology, device.type)
    opened = _open_unsharded(spec, device, mesh) if sharding == UNSHARDED else _open_sharded(spec, device, mesh)
    live = FsdpLive(**asdict(opened, recurse=False), topology=topology)
    watch_residence(live)
    if topology.tensor > 1:
        live.head = head_share(live.model, mesh[TENSOR], engine.get("tp_layout"))
    if topology.context > 1:
        _share_rows(live, topology, engine.get("context_layout") or CONTIGUOUS)
    return live


def _open_unsharded(spec: ScorerSpec, device: torch.device, mesh: DeviceMesh) -> Live:
    live = open_whole(spec, device)
    if TENSOR in (mesh.mesh_dim_names or ()):
        split_model(live.model, mesh[TENSOR])
    return live


def _open_sharded(spec: ScorerSpec, device: torch.device, mesh: DeviceMesh) -> Live:
    model = load_model(
        spec.checkpoint,
        dtype=spec.engine.get("master_dtype"),
        attention=spec.engine.get("attention"),
        trust_remote_code=spec.trust_remote_code,
    )  # on the CPU: FSDP moves one layer at a time, so no device ever holds the whole model
    compute = spec.engine.get("dtype") or dtype_name(model.dtype)
    if TENSOR in (mesh.mesh_dim_names or ()):
        split_model(model, mesh[TENSOR])
    shard_model(model, data_mesh(mesh), settings=spec.engine)
    logits = spec.engine.get("output_dtype") or compute
    return Live(model=model, device=device, seen=observe(model), logits_dtype=logits)


def _share_rows(live: FsdpLive, topology: Topology, layout: str) -> None:
    group, index = context_group(topology, live.device.type)
    share_columns(live, ContextShare(group=group, size=topology.context, index=index, layout=layout))
