"""The autograd function: what it computes in one call, what it keeps, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from attrs import frozen
from torch.autograd.function import once_differentiable

from xcfg_kernels.arguments import checked
from xcfg_kernels.capability import Implementation
from xcfg_kernels.exchange import Exchange
from xcfg_kernels.forward import log_sum_exp
from xcfg_kernels.layout import Layout, checked_layout
from xcfg_kernels.local import local_gradient
from xcfg_kernels.reduction import ReductionSpec
from xcfg_kernels.sharding import ShardingSpec


@frozen(kw_only=True, eq=False)
class _Call:
    """What one call computes. ``layouts`` are those of the ranks this process plays, one unless ranks are simulated."""

    layouts: tuple[Layout, ...]
    implementation: Implementation
    exchange: Exchange
    ignore_index: int


class _SelectedLogprob(torch.autograd.Function):
    """Saves the logits and two numbers a row; the backward pass recomputes the softmax in the logits' dtype."""

    @staticmethod
    def forward(ctx: Any, call: _Call, targets: torch.Tensor, *shards: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ignored = targets == call.ignore_index
        targets = torch.where(ignored, 0, targets)
        wanted, maximum, sums = log_sum_exp(shards, targets, call.layouts, call.implementation, call.exchange)
        log_sum = sums.log()
        ctx.call = call
        ctx.save_for_backward(targets, ignored, maximum, log_sum, *shards)
        ctx.set_materialize_grads(False)
        return torch.where(ignored, 0.0, (wanted - maximum) - log_sum), maximum + log_sum

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_logprob: torch.Tensor | None, of_lse: torch.Tensor | None) -> tuple[Any, ...]:
        targets, ignored, maximum, log_sum, *shards = ctx.saved_tensors
        zero = torch.zeros_like(maximum)
        of_logprob = zero if of_logprob is None else of_logprob.masked_fill(ignored, 0.0)
        upstream = (of_logprob, zero if of_lse is None else of_lse)
        gradients = [
            local_gradient(ctx.call.implementation, logits, targets, layout, (maximum, log_sum), upstream)
            for logits, layout in zip(shards, ctx.call.layouts, strict=True)
        ]
        return None, None, *gradients


def apply(
    shards: Sequence[torch.Tensor],
    targets: torch.Tensor,
    shardings: Sequence[ShardingSpec],
    exchange: Exchange,
    reduction: ReductionSpec,
    implementation: str,
    ignore_index: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logprob and log-sum-exp of the shape of ``targets``; one shard for each rank that this process plays."""
    chosen = Implementation(implementation)
    flat = [
        checked(logits, targets, sharding, reduction, chosen, ignore_index)
        for logits, sharding in zip(shards, shardings, strict=True)
    ]
    layouts = tuple(checked_layout(sharding, reduction) for sharding in shardings)
    call = _Call(layouts=layouts, implementation=chosen, exchange=exchange, ignore_index=ignore_index)
    logprob, lse = _SelectedLogprob.apply(call, targets.reshape(-1).long(), *flat)
    return logprob.view(targets.shape), lse.view(targets.shape)
