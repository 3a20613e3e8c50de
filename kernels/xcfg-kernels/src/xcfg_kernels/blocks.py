"""One rank's columns as canonical blocks: whole ones, a narrower last one, and padding that carries nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from xcfg_kernels.layout import Layout

Partials: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""(max, sum of exp(x - max)) float32; a block of minus infinities has the sum 0."""
BlockKernel: TypeAlias = Callable[[torch.Tensor], Partials]
"""From blocks (N, B, W) to partials (N, B) each; N and B are at least 1."""


def partials_of_shard(logits: torch.Tensor, layout: Layout, kernel: BlockKernel) -> Partials:
    """Partials (N, slots) of one rank's logits (N, columns).

    The last block of the vocabulary is widened with minus infinity, which adds zeros to its sum: its bits are then
    those it would have anywhere else.
    """
    rows, width = len(logits), layout.width
    maxima = logits.new_full((rows, layout.slots), -torch.inf, dtype=torch.float32)
    sums = torch.zeros_like(maxima)
    whole, rest = divmod(layout.sharding.real_columns, width)
    if rows and whole:
        blocks = logits[:, : whole * width].unflatten(1, (whole, width))
        maxima[:, :whole], sums[:, :whole] = kernel(blocks)
    if rows and rest:
        last = logits.new_full((rows, 1, width), -torch.inf)
        last[:, 0, :rest] = logits[:, whole * width : whole * width + rest]
        maxima[:, whole : whole + 1], sums[:, whole : whole + 1] = kernel(last)
    return maxima, sums
