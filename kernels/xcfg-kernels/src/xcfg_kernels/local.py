"""One rank's share of the work, by implementation: its partials, the target logits it owns, its gradient."""

from __future__ import annotations

import torch

from xcfg_kernels import eager
from xcfg_kernels.blocks import Partials, partials_of_shard
from xcfg_kernels.capability import Implementation
from xcfg_kernels.layout import Layout


def local_partials(
    implementation: Implementation, logits: torch.Tensor, targets: torch.Tensor, layout: Layout
) -> tuple[Partials, torch.Tensor]:
    """Partials (N, slots) each, and the owned target logits (N,) float32, 0 for a target of another rank."""
    if implementation is Implementation.TRITON:
        from xcfg_kernels.triton_kernels import partials_and_target

        return partials_and_target(logits, targets, layout)
    if implementation is Implementation.COMPILED:
        from xcfg_kernels.compiled import block_partials
    else:
        from xcfg_kernels.eager import block_partials
    return partials_of_shard(logits, layout, block_partials), owned_targets(logits, targets, layout)


def owned_targets(logits: torch.Tensor, targets: torch.Tensor, layout: Layout) -> torch.Tensor:
    """The target logits (N,) float32 of rows whose target this rank owns, 0 elsewhere."""
    column = targets - layout.sharding.start
    owned = (column >= 0) & (column < layout.sharding.real_columns)
    found = logits.gather(1, torch.where(owned, column, 0)[:, None])[:, 0].float()
    return torch.where(owned, found, 0.0)


def local_gradient(
    implementation: Implementation,
    logits: torch.Tensor,
    targets: torch.Tensor,
    layout: Layout,
    saved: tuple[torch.Tensor, torch.Tensor],
    upstream: tuple[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    """The gradient (N, columns) in the dtype of ``logits``.

    ``saved`` are the row maximum and the logarithm of the sum, ``upstream`` the gradients of logprob and log-sum-exp,
    each (N,) float32: ``g_logp * onehot + (g_lse - g_logp) * softmax``, added in float32 and rounded once.
    """
    (maximum, log_sum), (of_logprob, of_lse) = saved, upstream
    real, scale = layout.sharding.real_columns, of_lse - of_logprob
    if implementation is Implementation.TRITON:
        from xcfg_kernels.triton_kernels import gradient
    else:
        gradient = eager.gradient
    result = gradient(logits, maximum, log_sum, scale, real)
    column = targets - layout.sharding.start
    rows = ((column >= 0) & (column < real)).nonzero()[:, 0]
    place = (rows, column[rows])
    share = (logits[place].float() - maximum[rows] - log_sum[rows]).exp() * scale[rows]
    result[place] = (of_logprob[rows] + share).to(result.dtype)
    # A row that asks for nothing gets zeros even where its logits are NaN: it may be padding of the batch.
    idle = (of_logprob == 0) & (of_lse == 0)
    return result.masked_fill_(idle[:, None], 0) if bool(idle.any()) else result
