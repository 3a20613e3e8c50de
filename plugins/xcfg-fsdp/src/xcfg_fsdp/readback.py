"""What FSDP really did, by knob."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg_fsdp import placements, policy, residence
from xcfg_fsdp.context_layout import layout_of
from xcfg_fsdp.live import FsdpLive
from xcfg_fsdp.share import ContextShare
from xcfg_torch.readback import SHARED
from xcfg_torch.readback_scored import NOT_SCORED, Observed
from xcfg_torch.readback_scored import context_parallel_size as whole_rows


def collective(_live: FsdpLive) -> Observed:
    """Library of the ranks' process group."""
    import torch.distributed as dist

    return dist.get_backend() if dist.is_initialized() else Unobservable("no process group")


def context_parallel_size(live: FsdpLive) -> Observed:
    """How many times its own columns of keys each attention call had, where rows are shared; 1 where rows are whole."""
    if live.share is None or not live.seen.forwards:
        return whole_rows(live)
    ratios = {keys / queries for queries, keys in live.seen.gathered}
    ranks = ratios.pop() if len(ratios) == 1 else 0
    return int(ranks) if ranks == _share(live).size else Unobservable(f"attention calls gathered {live.seen.gathered}")


def context_layout(live: FsdpLive) -> Observed:
    """The layout that the columns of every pass agree with; None where rows are whole."""
    if live.share is None:
        return None
    if not live.passed:
        return NOT_SCORED
    size, index = _share(live).size, _share(live).index
    found = {layout_of(columns, width, size=size, index=index) for width, columns in live.passed}
    layout = found.pop() if len(found) == 1 else None
    return layout or Unobservable(f"rank {index} of {size} passed columns of no known layout: {live.passed[0]}")


def _share(live: FsdpLive) -> ContextShare:
    assert isinstance(live.share, ContextShare)
    return live.share


READERS: Mapping[str, Callable[[Any], Observed]] = {
    **SHARED,
    "training.sharding": placements.sharding,
    "training.world_size": placements.world_size,
    "training.tensor_parallel_size": placements.tensor_parallel_size,
    "training.context_parallel_size": context_parallel_size,
    "training.compute_dtype": policy.compute_dtype,
    "training.reduce_dtype": policy.reduce_dtype,
    "training.output_dtype": policy.output_dtype,
    "execution.collective": collective,
    "torch.device": residence.device,
    "fsdp.master_dtype": policy.master_dtype,
    "fsdp.reshard_after_forward": residence.reshard_after_forward,
    "fsdp.cpu_offload": residence.cpu_offload,
    "fsdp.context_layout": context_layout,
    "fsdp.activation_checkpointing": residence.activation_checkpointing,
}
"""Readers of every knob of the scorer ``fsdp``."""
