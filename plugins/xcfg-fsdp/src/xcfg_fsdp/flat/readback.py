"""What FSDP1 really did, by knob."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg_fsdp.flat.handles import FlatLive, flat_modules, handles, reshard
from xcfg_fsdp.flat.strategy import sharding, strategy, whole_layers, world_size
from xcfg_fsdp.readback import collective
from xcfg_fsdp.residence import activation_checkpointing
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.readback import SHARED
from xcfg_torch.readback import compute_dtype as activation_dtype
from xcfg_torch.readback_scored import Observed


def compute_dtype(live: FlatLive) -> Observed:
    """Dtype of the activations that entered linear layers, where each handle computes in the same."""
    seen = activation_dtype(live)
    said = {dtype_name(handle._fwd_bwd_param_dtype) for handle in handles(live.model)}
    return seen if said == {seen} else Unobservable(f"the handles say {sorted(said)}, the activations were {seen}")


def reduce_dtype(live: FlatLive) -> Observed:
    """Dtype in which every handle would reduce gradients."""
    return _one({dtype_name(handle._reduce_dtype) for handle in handles(live.model)}, "reduce dtypes")


def buffer_dtype(live: FlatLive) -> Observed:
    """Dtype of the floating-point buffers, where a cast was asked of FSDP; None where it leaves them alone."""
    asked = {module.mixed_precision.buffer_dtype for module in flat_modules(live.model).values()}
    if asked == {None}:
        return None
    return _one({dtype_name(item.dtype) for item in live.model.buffers() if item.is_floating_point()}, "buffer dtypes")


def master_dtype(live: FlatLive) -> Observed:
    """Dtype of the shards this rank keeps."""
    reshard(live.model)
    return _one({dtype_name(handle.flat_param._local_shard.dtype) for handle in handles(live.model)}, "shard dtypes")


def cpu_offload(live: FlatLive) -> Observed:
    """Whether every handle keeps its shard on the CPU, where the shards are where it says."""
    reshard(live.model)
    offloaded = {bool(handle._offload_params) for handle in handles(live.model)}
    homes = {handle.flat_param._local_shard.device.type for handle in handles(live.model)}
    if len(offloaded) == 1 and homes == ({"cpu"} if offloaded == {True} else {live.device.type}):
        return offloaded.pop()
    return Unobservable(f"shards are on {' and '.join(sorted(homes))}, offloaded is {sorted(offloaded)}")


def device(live: FlatLive) -> Observed:
    """Device kind that the handles compute on."""
    return _one({handle.device.type for handle in handles(live.model)}, "devices")


def _one(values: set[str], what: str) -> Observed:
    return values.pop() if len(values) == 1 else Unobservable(f"the wrapped modules have {what} {sorted(values)}")


READERS: Mapping[str, Callable[[Any], Observed]] = {
    **SHARED,
    "training.sharding": sharding,
    "training.world_size": world_size,
    "training.tensor_parallel_size": whole_layers,
    "training.compute_dtype": compute_dtype,
    "training.reduce_dtype": reduce_dtype,
    "execution.collective": collective,
    "torch.device": device,
    "fsdp.strategy": strategy,
    "fsdp.master_dtype": master_dtype,
    "fsdp.buffer_dtype": buffer_dtype,
    "fsdp.cpu_offload": cpu_offload,
    "fsdp.activation_checkpointing": activation_checkpointing,
}
"""Readers of every knob of the scorer ``fsdp1``."""
