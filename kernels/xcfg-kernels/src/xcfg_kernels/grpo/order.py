"""The sums of a loss, in the order its reduction declares."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from attrs import frozen

from xcfg_kernels.grpo.counts import DTYPES, divisors, lengths, microbatch_groups, shares
from xcfg_kernels.grpo.layout import LossLayout
from xcfg_kernels.grpo.reduction import Count, LossReductionSpec, Order
from xcfg_kernels.grpo.transport import Gather
from xcfg_kernels.merge import tree_sum


@frozen(kw_only=True, eq=False)
class Axes:
    """How values get from rank to rank."""

    cp: Gather
    dp: Gather


def summed(values: torch.Tensor) -> torch.Tensor:
    """One binary tree over the first dimension. Zeros behind the values change no bit: 0 + -0 is 0 in both."""
    return tree_sum(values.reshape(len(values), -1) + 0.0).reshape(values.shape[1:])


def of_sequences(own: torch.Tensor, layout: LossLayout, axes: Axes) -> torch.Tensor:
    """Values (rows of this rank, ...) as those of the whole batch (S, ...), each at its sequence's number."""
    rows = layout.dp_rows
    gathered = torch.cat(axes.dp(own, [len(rank) for rank in rows]))
    placed = torch.empty_like(gathered)
    placed[torch.tensor([row for rank in rows for row in rank], device=own.device)] = gathered
    return placed


def merged(
    tokens: Sequence[torch.Tensor], counts: torch.Tensor, layout: LossLayout, reduction: LossReductionSpec, axes: Axes
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss () and the number of each sequence (S,), alike on every rank.

    ``tokens`` are the token losses (R, T) of each of this rank's microbatches.
    """
    dtype = DTYPES[reduction.accumulation]
    whole = torch.cat([part.detach().to(dtype) for part in tokens])
    totals = _over_positions if reduction.order is Order.GLOBAL_POSITIONS else _over_context_ranks
    own_rows = torch.tensor(layout.dp_rows[layout.dp_rank], device=whole.device)
    own = totals(whole, layout, axes) / lengths(counts, reduction)[own_rows]
    sequences = of_sequences(own, layout, axes)
    divisor = divisors(counts, layout, reduction)
    if reduction.order is Order.GLOBAL_POSITIONS:
        loss = _by_number(sequences, divisor, layout, reduction)
    else:
        loss = _by_rank(own, divisor[own_rows], layout, reduction, axes)
    return loss / shares(layout, reduction), sequences


def _over_positions(tokens: torch.Tensor, layout: LossLayout, axes: Axes) -> torch.Tensor:
    gathered = torch.cat(axes.cp(tokens.t(), [len(rank) for rank in layout.positions]))
    placed = torch.empty_like(gathered)
    placed[torch.tensor([place for rank in layout.positions for place in rank], device=tokens.device)] = gathered
    return summed(placed)


def _over_context_ranks(tokens: torch.Tensor, layout: LossLayout, axes: Axes) -> torch.Tensor:
    first, *others = axes.cp(summed(tokens.t())[None], [1] * len(layout.positions))
    for other in others:
        first = first + other
    return first[0]


def _by_number(
    sequences: torch.Tensor, divisor: torch.Tensor, layout: LossLayout, reduction: LossReductionSpec
) -> torch.Tensor:
    if reduction.count is Count.GLOBAL:
        return summed(sequences) / divisor[0]
    return summed(torch.stack([summed(sequences[rows]) / divisor[rows[0]] for rows in microbatch_groups(layout)]))


def _by_rank(
    own: torch.Tensor, divisor: torch.Tensor, layout: LossLayout, reduction: LossReductionSpec, axes: Axes
) -> torch.Tensor:
    local = reduction.count is Count.MICROBATCH
    sizes = [len(rows) for rows in layout.own]
    parts = zip(own.split(sizes), divisor.split(sizes), strict=True)
    partial = summed(torch.stack([summed(values) / (by[0] if local else 1) for values, by in parts]))
    first, *others = axes.dp(partial[None], [1] * len(layout.microbatches))
    for other in others:
        first = first + other
    return first[0] if local else first[0] / divisor[0]
