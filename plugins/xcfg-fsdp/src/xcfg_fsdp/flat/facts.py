"""What one rank of FSDP1 holds, for its metadata."""

from __future__ import annotations

from xcfg.model.json import Json
from xcfg_fsdp.flat.handles import FlatLive, handles
from xcfg_fsdp.flat.strategy import local_elements, parallel_degrees
from xcfg_torch.dtypes import dtype_name


def flat_facts(live: FlatLive) -> dict[str, Json]:
    """Backend, groups and this rank's share of the parameters, nothing gathered."""
    import torch.distributed as dist

    own = handles(live.model)
    return {
        "collective_backend": dist.get_backend(),
        "parameter_dtypes": sorted({dtype_name(handle.flat_param._local_shard.dtype) for handle in own}),
        "wrapped_modules": len(own),
        "local_elements": sum(local_elements(handle) for handle in own),
        "elements": sum(handle.flat_param._unpadded_unsharded_size.numel() for handle in own),
        "mesh": parallel_degrees(live),
        "strategies": sorted({handle._sharding_strategy.name for handle in own}),
        "buffer_dtypes": sorted({dtype_name(item.dtype) for item in live.model.buffers()}),
    }
