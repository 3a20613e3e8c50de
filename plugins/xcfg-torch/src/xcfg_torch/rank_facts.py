"""Metadata of one rank, from what its hooks saw."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.errors import XcfgError
from xcfg.model.sample import RankInfo
from xcfg_torch.dtypes import dtype_name, lowest_precision
from xcfg_torch.live import Live


def rank_info(live: Live, *, rank: int, world_size: int, parallel: Mapping[str, int]) -> RankInfo:
    """The rank's metadata after a scoring call. Raises XcfgError where no linear layer was seen: dtype unknown."""
    import torch

    seen = live.seen
    if live.steps and not seen.activations:
        raise XcfgError("no linear layer of the model was seen to run, so its compute dtype is unknown")
    return RankInfo(
        rank=rank,
        world_size=world_size,
        compute_dtype=lowest_precision(seen.activations) if seen.activations else "",
        parallel=parallel,
        padding_side=seen.padding_side,
        cache_mode="present" if seen.cached else "none",
        facts={
            "device": str(live.device),
            "activation_dtypes": sorted(seen.activations),
            "parameter_dtypes": sorted({dtype_name(parameter.dtype) for parameter in live.model.parameters()}),
            "logits_dtypes": sorted(seen.logits),
            "attention": sorted(seen.attention),
            "threads": torch.get_num_threads(),
            "forward_shapes": [[item.rows, item.width] for item in seen.forwards],
            "parts": [step.part.value for step in live.steps],
        },
    )
