"""The scheme ``order_free``: an integer sum, which has one value whatever the order and the shards.

With the row's global maximum known first, each weight exp(x - max) is at most 1 and is kept as a whole number of
2**-40. Weights below that are dropped: at most ``vocab_size * 2**-40`` of a sum that is at least 1.
"""

from __future__ import annotations

import torch

from xcfg_kernels.eager import row_chunks

SCALE = 2.0**40


def shard_maximum(logits: torch.Tensor, real: int) -> torch.Tensor:
    """The largest real logit of each row (N,) float32; minus infinity where this rank has none."""
    if not real:
        return logits.new_full((len(logits),), -torch.inf, dtype=torch.float32)
    return logits[:, :real].amax(dim=1).float()


def shard_weights(logits: torch.Tensor, maximum: torch.Tensor, real: int) -> torch.Tensor:
    """The sum of fixed-point weights (N,) int64. A row whose maximum is not finite has a sum without meaning."""
    sums = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
    base = torch.where(maximum.isfinite(), maximum, 0.0)
    for part in row_chunks(len(logits), real):
        held = torch.sub(logits[part, :real], base[part, None]).exp_().mul_(SCALE)
        sums[part] = held.to(torch.int64).sum(dim=1)
    return sums


def as_sum(weights: torch.Tensor, maximum: torch.Tensor) -> torch.Tensor:
    """All ranks' weights as the sum of exp(x - max) (N,) float32; 0 for a row of minus infinities."""
    sums = weights.float() / SCALE
    sums = torch.where(maximum.isneginf(), 0.0, sums)
    return torch.where(maximum.isposinf() | maximum.isnan(), torch.nan, sums)
