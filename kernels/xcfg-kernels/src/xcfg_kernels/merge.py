"""From the partial sums of canonical blocks to one log-sum-exp: the same operations in the same order at any degree."""

from __future__ import annotations

import torch


def merge_blocks(maxima: torch.Tensor, sums: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Partials (B, N) float32 of all blocks in global order to the row maximum (N,) and the sum of exp(x - max) (N,).

    Every step is elementwise or a maximum, so a row's bits depend on that row alone. A row of minus infinities has the
    sum 0, a row with NaN or plus infinity the sum NaN.
    """
    highest = maxima.amax(dim=0)
    base = torch.where(highest.isneginf(), 0.0, highest)
    return highest, tree_sum((maxima - base).exp_().mul_(sums))


def tree_sum(values: torch.Tensor) -> torch.Tensor:
    """Sums (N,) over the blocks of (B, N) by halving: block i takes block i + B/2, after zeros up to a power of two."""
    count = len(values)
    half = 1 << (count - 1).bit_length() >> 1
    if half and count < 2 * half:
        values = torch.nn.functional.pad(values, (0, 0, 0, 2 * half - count))
    while half:
        values = values[:half] + values[half:]
        half //= 2
    return values[0]
