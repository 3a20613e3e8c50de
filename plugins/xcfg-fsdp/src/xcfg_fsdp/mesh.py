"""The device mesh of each sharding strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcfg.errors import UnsupportedError

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

MESH_NAMES = {"shard", "replicate"}
"""Names of the dimensions that FSDP's meshes have."""


def hybrid_shape(world_size: int) -> tuple[int, int]:
    """(replicas, ranks a shard group): the fewest replicas above one that divide the ranks.

    Raises UnsupportedError for one rank, which leaves nothing to replicate.
    """
    if world_size < 2:
        raise UnsupportedError("hybrid sharding needs at least 2 ranks", where="training.sharding")
    replicas = next(count for count in range(2, world_size + 1) if world_size % count == 0)
    return replicas, world_size // replicas


def context_group(size: int, world_size: int, device_type: str) -> tuple[object, int]:
    """(process group, own place) among ``size`` ranks that share rows, neighbours in the order of ranks.

    Raises UnsupportedError where the ranks cannot be split into such groups. Every rank must call it.
    """
    from torch.distributed.device_mesh import init_device_mesh

    if world_size % size:
        raise UnsupportedError(
            f"{world_size} ranks cannot be split into groups of {size}", where="training.context_parallel_size"
        )
    mesh = init_device_mesh(device_type, (world_size // size, size), mesh_dim_names=("data", "context"))["context"]
    return mesh.get_group(), mesh.get_local_rank()


def mesh_of(sharding: str, world_size: int, device_type: str) -> DeviceMesh:
    """A mesh ``(shard,)`` for ``full_shard`` and ``(replicate, shard)`` for ``hybrid``."""
    from torch.distributed.device_mesh import init_device_mesh

    if sharding == "full_shard":
        return init_device_mesh(device_type, (world_size,), mesh_dim_names=("shard",))
    if sharding == "hybrid":
        return init_device_mesh(device_type, hybrid_shape(world_size), mesh_dim_names=("replicate", "shard"))
    raise UnsupportedError(f"{sharding!r} is not a sharding of FSDP", where="training.sharding")
