"""What a loss is divided by, known before the first backward pass."""

from __future__ import annotations

import torch

from xcfg.errors import InvalidInput
from xcfg_kernels.grpo.layout import LossLayout
from xcfg_kernels.grpo.reduction import Count, LossReductionSpec, Normaliser

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def microbatch_groups(layout: LossLayout) -> list[list[int]]:
    """The sequences of every microbatch of all ranks in ascending number, microbatches by their first sequence."""
    return sorted(sorted(rows) for rank in layout.microbatches for rows in rank)


def divisors(counts: torch.Tensor, layout: LossLayout, reduction: LossReductionSpec) -> torch.Tensor:
    """By what the number of each sequence (S,) is divided when it is added to the others, in the accumulation's dtype.

    ``counts`` (S,) int64 are active tokens. The number of a sequence is the mean of its tokens under the normalisers
    that have ``seq`` in their name, their sum otherwise. The mean over microbatches is not in it. Raises InvalidInput
    where nothing is active in what is counted.
    """
    if not bool(counts.any()):
        raise InvalidInput("no token of the batch is active", where="mask")
    groups = [list(range(layout.sequences))] if reduction.count is Count.GLOBAL else microbatch_groups(layout)
    found = torch.ones(layout.sequences, dtype=DTYPES[reduction.accumulation], device=counts.device)
    for rows in groups:
        if reduction.normaliser is Normaliser.TOKEN_MEAN:
            tokens = int(counts[rows].sum())
            if not tokens:
                message = f"no token is active in the microbatch of the sequences {rows}"
                raise InvalidInput(message, where="mask", hint="count globally, or leave the microbatch out")
            found[rows] = tokens
        elif reduction.normaliser is Normaliser.SEQ_MEAN:
            found[rows] = len(rows)
        elif reduction.constant is not None:
            found[rows] = reduction.constant
    return found


def lengths(counts: torch.Tensor, reduction: LossReductionSpec) -> torch.Tensor:
    """By what the sum of a sequence's tokens (S,) is divided first: its active tokens, at least 1, or 1."""
    if reduction.normaliser in (Normaliser.TOKEN_MEAN, Normaliser.CONSTANT):
        counts = torch.ones_like(counts)
    return counts.clamp(min=1).to(DTYPES[reduction.accumulation])


def shares(layout: LossLayout, reduction: LossReductionSpec) -> int:
    """Over how many losses the last mean is: microbatches of all ranks, or one."""
    return sum(map(len, layout.microbatches)) if reduction.count is Count.MICROBATCH else 1


def token_weights(counts: torch.Tensor, layout: LossLayout, reduction: LossReductionSpec) -> torch.Tensor:
    """The derivative (S,) of the loss in the loss of an active token of each sequence, in the accumulation's dtype."""
    return 1 / lengths(counts, reduction) / divisors(counts, layout, reduction) / shares(layout, reduction)
