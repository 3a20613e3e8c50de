"""Triton kernels: the partials of canonical blocks in one read of the logits, and the gradient by recomputation.

Tile widths and warps are fixed, never tuned at run time: another tile adds in another order and gives other bits.
Imported only after :func:`xcfg_kernels.capability.probe` allowed it. Under ``TRITON_INTERPRET=1`` they run on the CPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from xcfg_kernels.blocks import Partials
from xcfg_kernels.layout import Layout

TILE = 2048
"""Columns in registers at a time. A wider block is walked in several steps, with its maximum carried on."""
GRADIENT_TILE = 1024
WARPS = 4


@triton.jit
def _partials_kernel(
    logits, targets, maxima, sums, picked, stride, slots, real, start, WIDTH: tl.constexpr, TILE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    slot = tl.program_id(1)
    first = slot * WIDTH
    wanted = tl.load(targets + row) - start
    highest = tl.full((), float("-inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    found = tl.full((), 0.0, tl.float32)
    for step in range(0, WIDTH, TILE):
        inside = step + tl.arange(0, TILE)
        column = first + inside
        here = (inside < WIDTH) & (column < real)
        tile = tl.load(logits + row * stride + column, mask=here, other=float("-inf")).to(tl.float32)
        broken = tl.sum((tile != tile).to(tl.int32), axis=0) > 0
        raised = tl.maximum(highest, tl.max(tile, axis=0))
        base = tl.where(raised == float("-inf"), 0.0, raised)
        total = total * tl.exp(highest - base) + tl.sum(tl.exp(tile - base), axis=0)
        highest = tl.where(broken | (highest != highest), float("nan"), raised)
        found += tl.sum(tl.where(here & (column == wanted), tile, 0.0), axis=0)
    tl.store(maxima + row * slots + slot, highest)
    tl.store(sums + row * slots + slot, total)
    if (wanted >= first) & (wanted < first + WIDTH) & (wanted < real):
        tl.store(picked + row, found)


@triton.jit
def _gradient_kernel(logits, result, maximum, log_sum, scale, stride, out_stride, real, columns, TILE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    tile = tl.load(logits + row * stride + column, mask=column < real, other=float("-inf")).to(tl.float32)
    weight = tl.exp((tile - tl.load(maximum + row)) - tl.load(log_sum + row)) * tl.load(scale + row)
    kept = tl.where(column < real, weight, 0.0)
    tl.store(result + row * out_stride + column, kept.to(result.dtype.element_ty), mask=column < columns)


def partials_and_target(logits: torch.Tensor, targets: torch.Tensor, layout: Layout) -> tuple[Partials, torch.Tensor]:
    """Partials (N, slots) of one rank's logits (N, columns); logits of the targets it owns, 0 elsewhere (N,)."""
    sharding = layout.sharding
    maxima = logits.new_full((len(logits), layout.slots), -torch.inf, dtype=torch.float32)
    sums, picked = torch.zeros_like(maxima), logits.new_zeros((len(logits),), dtype=torch.float32)
    if len(logits):
        _partials_kernel[(len(logits), layout.slots)](
            logits, targets, maxima, sums, picked, logits.stride(0), layout.slots, sharding.real_columns,
            sharding.start, WIDTH=layout.width, TILE=min(TILE, triton.next_power_of_2(layout.width)), num_warps=WARPS,
        )  # fmt: skip
    return (maxima, sums), picked


def gradient(
    logits: torch.Tensor, maximum: torch.Tensor, log_sum: torch.Tensor, scale: torch.Tensor, real: int
) -> torch.Tensor:
    """``scale * softmax`` (N, columns) in the dtype of ``logits``, zero from column ``real`` on."""
    rows, columns = logits.shape
    result = torch.empty((rows, columns), dtype=logits.dtype, device=logits.device)
    if rows:
        _gradient_kernel[(rows, triton.cdiv(columns, GRADIENT_TILE))](
            logits, result, maximum, log_sum, scale, logits.stride(0), result.stride(0), real, columns,
            TILE=GRADIENT_TILE, num_warps=WARPS,
        )  # fmt: skip
    return result
