"""The device mesh of each sharding strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcfg.errors import UnsupportedError
from xcfg_fsdp.topology import Topology

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

UNSHARDED = "unsharded"
SHARD, REPLICATE, DATA, TENSOR = "shard", "replicate", "data", "tp"
"""Names of mesh dimensions: FSDP's own two, groups of ranks with whole layers, and tensor-parallel ranks."""


def hybrid_shape(ranks: int) -> tuple[int, int]:
    """(replicas, ranks a shard group): the fewest replicas above one that divide the ranks.

    Raises UnsupportedError for one rank, which leaves nothing to replicate.
    """
    if ranks < 2:
        raise UnsupportedError("hybrid sharding needs at least 2 ranks", where="training.sharding")
    replicas = next(count for count in range(2, ranks + 1) if ranks % count == 0)
    return replicas, ranks // replicas


def context_group(topology: Topology, device_type: str) -> tuple[object, int]:
    """(process group, own place) of the ranks that share this rank's rows. Every rank must call it."""
    from torch.distributed.device_mesh import init_device_mesh

    shape = (topology.data, topology.context, topology.tensor)
    mesh = init_device_mesh(device_type, shape, mesh_dim_names=(DATA, "context", TENSOR))["context"]
    return mesh.get_group(), mesh.get_local_rank()


def mesh_of(sharding: str, topology: Topology, device_type: str) -> DeviceMesh:
    """A mesh ``(shard,)`` for ``full_shard``, ``(replicate, shard)`` for ``hybrid``, ``(data,)`` for ``unsharded``.

    ``tp`` is the last dimension where layers are split over ranks. Raises UnsupportedError for another sharding.
    """
    from torch.distributed.device_mesh import init_device_mesh

    names, shape = _data_dimensions(sharding, topology.shards)
    if topology.tensor > 1:
        names, shape = (*names, TENSOR), (*shape, topology.tensor)
    return init_device_mesh(device_type, shape, mesh_dim_names=names)


def data_mesh(mesh: DeviceMesh) -> DeviceMesh:
    """The part of the mesh that FSDP works on."""
    names = tuple(name for name in mesh.mesh_dim_names or () if name != TENSOR)
    return mesh if names == mesh.mesh_dim_names else mesh[names]


def _data_dimensions(sharding: str, ranks: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
    if sharding == UNSHARDED:
        return (DATA,), (ranks,)
    if sharding == "full_shard":
        return (SHARD,), (ranks,)
    if sharding == "hybrid":
        return (REPLICATE, SHARD), hybrid_shape(ranks)
    raise UnsupportedError(f"{sharding!r} is not a sharding of FSDP", where="training.sharding")
