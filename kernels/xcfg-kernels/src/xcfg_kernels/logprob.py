"""Selected-token logprobs whose bits do not depend on the tensor-parallel degree, the batch or the threads."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from xcfg.errors import InvalidInput
from xcfg_kernels.arguments import IGNORE_INDEX
from xcfg_kernels.capability import Implementation
from xcfg_kernels.exchange import in_process, over_group
from xcfg_kernels.function import apply
from xcfg_kernels.reduction import ReductionSpec
from xcfg_kernels.sharding import ShardingSpec, unsharded

CANONICAL = ReductionSpec()


def selected_logprob(
    logits: torch.Tensor,
    targets: torch.Tensor,
    sharding: ShardingSpec | None = None,
    group: dist.ProcessGroup | None = None,
    *,
    reduction: ReductionSpec = CANONICAL,
    implementation: str = Implementation.EAGER,
    ignore_index: int = IGNORE_INDEX,
) -> torch.Tensor:
    """The logprob of each target, in nats, float32; see :func:`selected_logprob_and_lse`."""
    return selected_logprob_and_lse(
        logits, targets, sharding, group, reduction=reduction, implementation=implementation, ignore_index=ignore_index
    )[0]


def selected_logprob_and_lse(
    logits: torch.Tensor,
    targets: torch.Tensor,
    sharding: ShardingSpec | None = None,
    group: dist.ProcessGroup | None = None,
    *,
    reduction: ReductionSpec = CANONICAL,
    implementation: str = Implementation.EAGER,
    ignore_index: int = IGNORE_INDEX,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``logit[target] - logsumexp(logits)`` and the log-sum-exp, in nats, float32, of the shape of ``targets``.

    ``logits`` (..., columns) float32, bfloat16 or float16 are this rank's columns; without ``sharding`` they are the
    whole vocabulary. ``targets`` (...) int64 are token ids of the whole vocabulary, the same on every rank; a target of
    ``ignore_index`` has logprob 0 and no gradient from it. ``group`` is the tensor-parallel process group; every rank
    gets every row. Differentiable in ``logits``; the gradient has their dtype, and zeros in padding columns.

    Raises InvalidInput where sharding, reduction, group, shapes or targets contradict each other, UnsupportedError
    where the implementation cannot take these logits.
    """
    sharding = unsharded(logits.shape[-1]) if sharding is None and group is None else sharding
    if sharding is None:
        raise InvalidInput("a group needs the bounds of its ranks", where="sharding", hint="give a ShardingSpec")
    if group is None and sharding.tp_world > 1:
        raise InvalidInput(f"a vocabulary on {sharding.tp_world} ranks needs their process group", where="group")
    exchange = in_process if group is None else over_group(group, sharding)
    return apply([logits], targets, [sharding], exchange, reduction, implementation, ignore_index)


def simulated_logprob_and_lse(
    shards: Sequence[torch.Tensor],
    targets: torch.Tensor,
    sharding: ShardingSpec,
    *,
    reduction: ReductionSpec = CANONICAL,
    implementation: str = Implementation.EAGER,
    ignore_index: int = IGNORE_INDEX,
) -> tuple[torch.Tensor, torch.Tensor]:
    """:func:`selected_logprob_and_lse` with every rank played by this process; ``shards`` are their logits in order."""
    if len(shards) != sharding.tp_world:
        raise InvalidInput(f"{sharding.tp_world} ranks need as many shards, not {len(shards)}", where="shards")
    ranks = [sharding.at(rank) for rank in range(sharding.tp_world)]
    return apply(shards, targets, ranks, in_process, reduction, implementation, ignore_index)
