"""The loss of a batch that lies on context and data parallel ranks, in microbatches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from attrs import frozen
from torch.autograd.function import once_differentiable

from xcfg.errors import InvalidInput
from xcfg_kernels.grpo.counts import token_weights
from xcfg_kernels.grpo.layout import LossLayout
from xcfg_kernels.grpo.order import Axes, merged, of_sequences
from xcfg_kernels.grpo.policy import PolicyLossSpec
from xcfg_kernels.grpo.reduction import LossReductionSpec
from xcfg_kernels.grpo.tokens import Microbatch, TokenTerms, token_terms
from xcfg_kernels.grpo.transport import transport


@frozen(kw_only=True, eq=False)
class GrpoLoss:
    """``loss`` () is differentiable; ``sequences`` (S,) are the numbers it is made of, in the accumulation's dtype.

    A sequence's number is the mean of its token losses under ``seq_mean`` and ``seq_sum_token_mean``, else their sum.
    ``counts`` (S,) int64 are active tokens, ``terms`` those of this rank's microbatches.
    """

    loss: torch.Tensor
    sequences: torch.Tensor
    counts: torch.Tensor
    terms: tuple[TokenTerms, ...]


class _Reduced(torch.autograd.Function):
    """The reduced loss; its gradient in a token's loss is that token's weight, so nothing is added on the way back."""

    @staticmethod
    def forward(ctx: Any, call: tuple[Any, ...], *tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        counts, layout, reduction, axes = call
        weights = token_weights(counts, layout, reduction)
        ctx.weights = [weights[list(rows)][:, None] for rows in layout.own]
        ctx.like = [(part.shape, part.dtype) for part in tokens]
        loss, sequences = merged(tokens, counts, layout, reduction, axes)
        ctx.mark_non_differentiable(sequences)
        return loss, sequences

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: torch.Tensor, _: torch.Tensor) -> tuple[Any, ...]:
        each = zip(ctx.weights, ctx.like, strict=True)
        return None, *((of_loss * weight).to(dtype).expand(shape) for weight, (shape, dtype) in each)


def grpo_loss(
    batches: Sequence[Microbatch],
    layout: LossLayout,
    policy: PolicyLossSpec,
    reduction: LossReductionSpec,
    *,
    cp_group: dist.ProcessGroup | None = None,
    dp_group: dist.ProcessGroup | None = None,
) -> GrpoLoss:
    """The loss of the whole batch, alike on every rank, from the microbatches of this rank.

    Its gradient is that of the whole loss in this rank's logprobs: gradients of parameters are to be summed over
    context and data parallel ranks, not averaged. The groups hold the context and the data parallel ranks this one
    shares a batch with; tensor parallel ranks each compute the same. Every rank of a group must call.

    Raises InvalidInput where batches, layout, groups or what other ranks declare contradict each other, or nothing is
    active, UnsupportedError for logprobs of a dtype too coarse to subtract.
    """
    sizes = [(len(rows), len(layout.positions[layout.cp_rank])) for rows in layout.own]
    found = [tuple(batch.logprobs.shape) for batch in batches]
    if found != sizes:
        raise InvalidInput(f"the layout gives this rank logprobs of {sizes}, these are {found}", where="batches")
    terms = tuple(token_terms(batch, policy) for batch in batches)
    axes = loss_axes(layout, policy, reduction, cp_group, dp_group, batches[0].logprobs)
    counts = active_counts([batch.mask for batch in batches], layout, axes)
    loss, sequences = _Reduced.apply((counts, layout, reduction, axes), *(part.loss for part in terms))
    return GrpoLoss(loss=loss, sequences=sequences, counts=counts, terms=terms)


def loss_axes(
    layout: LossLayout,
    policy: PolicyLossSpec,
    reduction: LossReductionSpec,
    cp_group: dist.ProcessGroup | None,
    dp_group: dist.ProcessGroup | None,
    like: torch.Tensor,
) -> Axes:
    """The transport over both groups, once their ranks have shown that they declare the same. Raises InvalidInput."""
    agreed = [layout.record(), policy.record(), reduction.record(), str(like.dtype)]
    cp, dp = (layout.cp_rank, len(layout.positions)), (layout.dp_rank, len(layout.microbatches))
    return Axes(
        cp=transport(cp_group, *cp, agreed, "context", like.device),
        dp=transport(dp_group, *dp, agreed, "data", like.device),
    )


def active_counts(masks: Sequence[torch.Tensor], layout: LossLayout, axes: Axes) -> torch.Tensor:
    """Active tokens of every sequence of the batch (S,) int64 from this rank's masks (R, T): whole numbers, exact."""
    own = torch.cat(list(masks)).sum(dim=1)
    return of_sequences(torch.cat(axes.cp(own[None], [1] * len(layout.positions))).sum(dim=0), layout, axes)
