"""Eight 4-bit codes in an int32, as compressed-tensors, GPTQ and AWQ files hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""Column held by each nibble of an AWQ word, lowest nibble first (AutoAWQ's ``gemm`` layout)."""


def packed_columns(codes: torch.Tensor, order: tuple[int, ...] = tuple(range(8))) -> torch.Tensor:
    """``codes`` [rows, columns] from 0 to 15 to int32 [rows, columns / 8].

    Nibble i, lowest first, holds column ``order[i]`` of eight.
    """
    import torch

    rows, columns = codes.shape
    eights = codes.to(torch.int64).reshape(rows, columns // 8, 8)
    words = torch.zeros(rows, columns // 8, dtype=torch.int64)
    for nibble, column in enumerate(order):
        words |= eights[:, :, column] << (4 * nibble)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


def unpacked_columns(words: torch.Tensor, order: tuple[int, ...] = tuple(range(8))) -> torch.Tensor:
    """The codes [rows, 8 * columns] of :func:`packed_columns`, int32."""
    import torch

    codes = torch.empty(*words.shape, 8, dtype=torch.int32)
    for nibble, column in enumerate(order):
        codes[..., column] = (words >> (4 * nibble)) & 15
    return codes.flatten(1)
