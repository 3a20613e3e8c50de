"""The reference: each step one torch operation in float32, on as many rows at a time as stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from xcfg_kernels.blocks import Partials

CHUNK = 2**19
"""Logits held in float32 at a time. A row's bits do not depend on it."""


def block_partials(blocks: torch.Tensor) -> Partials:
    """Partials (N, B) of blocks (N, B, W)."""
    rows, count, width = blocks.shape
    maxima = blocks.new_empty((rows, count), dtype=torch.float32)
    sums = torch.empty_like(maxima)
    scratch = blocks.new_empty((min(rows, _rows(count * width)), count, width), dtype=torch.float32)
    for part in row_chunks(rows, count * width):
        held = scratch[: part.stop - part.start]
        held.copy_(blocks[part])
        highest = torch.amax(held, dim=-1, out=maxima[part])
        base = torch.where(highest.isneginf(), 0.0, highest)
        held.sub_(base[..., None]).exp_()
        torch.sum(held, dim=-1, out=sums[part])
    return maxima, sums


def gradient(
    logits: torch.Tensor, maximum: torch.Tensor, log_sum: torch.Tensor, scale: torch.Tensor, real: int
) -> torch.Tensor:
    """``scale * softmax`` (N, columns) in the dtype of ``logits``, zero from column ``real`` on.

    ``maximum``, ``log_sum`` and ``scale`` are (N,) float32; the softmax is exp((x - maximum) - log_sum).
    """
    rows, columns = logits.shape
    result = torch.zeros_like(logits) if real < columns else torch.empty_like(logits)
    scratch = logits.new_empty((min(rows, _rows(real)), real), dtype=torch.float32)
    for part in row_chunks(rows, real):
        held = scratch[: part.stop - part.start]
        held.copy_(logits[part, :real])
        held.sub_(maximum[part, None]).sub_(log_sum[part, None]).exp_().mul_(scale[part, None])
        result[part, :real] = held
    return result


def _rows(columns: int) -> int:
    return max(CHUNK // max(columns, 1), 1)


def row_chunks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of rows whose columns in float32 stay within :data:`CHUNK`."""
    step = _rows(columns)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
