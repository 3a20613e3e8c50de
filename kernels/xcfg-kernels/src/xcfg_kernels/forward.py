"""The forward pass over the ranks: partials, one exchange, one merge."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from xcfg_kernels.blocks import Partials
from xcfg_kernels.capability import Implementation
from xcfg_kernels.exchange import Exchange, constant, with_header, without_header
from xcfg_kernels.layout import Layout, agreement
from xcfg_kernels.local import local_partials, owned_targets
from xcfg_kernels.merge import merge_blocks
from xcfg_kernels.order_free import as_sum, shard_maximum, shard_weights
from xcfg_kernels.reduction import Scheme
from xcfg_kernels.sharding import ShardingSpec

Sums = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Target logit, maximum, sum of exp(x - maximum): (N,) float32 each."""


def log_sum_exp(
    shards: Sequence[torch.Tensor],
    targets: torch.Tensor,
    layouts: Sequence[Layout],
    implementation: Implementation,
    exchange: Exchange,
) -> Sums:
    """The three numbers a logprob is made of, of every row, alike on every rank."""
    if layouts[0].reduction.scheme is Scheme.ORDER_FREE:
        return _order_free(shards, targets, layouts, implementation, exchange)
    return _canonical_blocks(shards, targets, layouts, implementation, exchange)


def _canonical_blocks(
    shards: Sequence[torch.Tensor],
    targets: torch.Tensor,
    layouts: Sequence[Layout],
    implementation: Implementation,
    exchange: Exchange,
) -> Sums:
    parts = [local_partials(implementation, shard, targets, own) for shard, own in zip(shards, layouts, strict=True)]
    return merge_ranks(
        parts, targets, layouts[0], agreement(layouts[0], implementation, str(shards[0].dtype)), exchange
    )


def merge_ranks(
    parts: Sequence[tuple[Partials, torch.Tensor]],
    targets: torch.Tensor,
    layout: Layout,
    agreed: tuple[float, float, float],
    exchange: Exchange,
) -> Sums:
    """Exchanges the partials and owned target logits of the ranks this process plays, and merges those of all ranks."""
    if layout.sharding.tp_world == 1:
        ((maxima, sums), wanted), count = parts[0], layout.counts[0]
        return wanted, *merge_blocks(maxima.t()[:count].contiguous(), sums.t()[:count].contiguous())
    carried = [with_header([maxima.t(), sums.t(), wanted[None]], agreed) for (maxima, sums), wanted in parts]
    gathered, slots = without_header(exchange(carried), agreed), layout.slots
    merged = merge_blocks(
        _in_global_order(gathered[:, :slots], layout), _in_global_order(gathered[:, slots:-1], layout)
    )
    return _of_owner(gathered[:, -1], targets, layout.sharding), *merged


def _in_global_order(partials: torch.Tensor, layout: Layout) -> torch.Tensor:
    """(world, slots, N) as (blocks of the vocabulary, N).

    Shards are even, and a shard with a later neighbour in the vocabulary is whole blocks: padding comes last.
    """
    return partials.flatten(0, 1)[: sum(layout.counts)]


def _order_free(
    shards: Sequence[torch.Tensor],
    targets: torch.Tensor,
    layouts: Sequence[Layout],
    implementation: Implementation,
    exchange: Exchange,
) -> Sums:
    agreed = agreement(layouts[0], implementation, str(shards[0].dtype))
    owned = list(zip(shards, layouts, [layout.sharding.real_columns for layout in layouts], strict=True))
    known = [(shard_maximum(own, real)[None], owned_targets(own, targets, at)[None]) for own, at, real in owned]
    gathered = without_header(exchange([with_header(values, agreed) for values in known]), agreed)
    maximum = gathered[:, 0].amax(dim=0)
    weights = exchange([shard_weights(own, maximum, real) for own, _, real in owned]).sum(dim=0)
    return _of_owner(gathered[:, 1], targets, layouts[0].sharding), maximum, as_sum(weights, maximum)


def _of_owner(candidates: torch.Tensor, targets: torch.Tensor, sharding: ShardingSpec) -> torch.Tensor:
    """The target logit (N,) from the one rank that has it; ``candidates`` are (world, N). No addition takes part."""
    starts = constant(tuple(start for start, _ in sharding.bounds[1:]), torch.int64, targets.device)
    owner = torch.bucketize(targets, starts, right=True)
    return candidates.gather(0, owner[None])[0]
