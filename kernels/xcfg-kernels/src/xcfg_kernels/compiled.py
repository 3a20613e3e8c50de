"""The compiled kernel: one pass over the logits through ``torch.compile``, with bits of its own.

One program serves every shape: sizes are symbolic, equal sizes share no symbol, and a size of 1, for which the compiler
would write another loop, is doubled first. So a block's bits depend on its own logits alone.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch

from xcfg_kernels.blocks import BlockKernel, Partials

LOG2_E = math.log2(math.e)
RECOMPILE_LIMIT = 64
"""Dtypes, strides and thread counts each have a program; at torch's own limit of 8 it would stop compiling."""


def block_partials(blocks: torch.Tensor) -> Partials:
    """Partials (N, B) of blocks (N, B, W) on the CPU. Raises what the compiler raises; nothing runs uncompiled."""
    import torch._dynamo.config as dynamo
    import torch.fx.experimental._config as symbols

    rows, count, _ = blocks.shape
    widened = blocks.expand(max(rows, 2), max(count, 2), -1).contiguous() if 1 in (rows, count) else blocks
    with dynamo.patch(recompile_limit=RECOMPILE_LIMIT), symbols.patch(use_duck_shape=False):
        maxima, sums = _program()(widened)
    return maxima[:rows, :count], sums[:rows, :count]


@lru_cache(maxsize=1)
def _program() -> BlockKernel:
    return torch.compile(_partials, dynamic=True, fullgraph=True)


def _partials(blocks: torch.Tensor) -> Partials:
    held = blocks.float()
    highest = held.amax(dim=-1)
    base = torch.where(highest == -torch.inf, 0.0, highest)
    # The vector library's power of two is quicker than its exponential. The product's rounding is an error of
    # |x - max| * 2**-24 in a weight of exp(x - max): largest, 2**-25.4, one nat below the maximum.
    return highest, torch.exp2((held - base[..., None]) * LOG2_E).sum(dim=-1)
