"""The label shift of teacher forcing: the only place where a token meets the logits that score it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LABEL_SHIFT = 1
"""Logits at position t - 1 score the token at position t."""


def select(
    logits: torch.Tensor, input_ids: torch.Tensor, response: torch.Tensor, *, first: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits (N, V) that score N response tokens, and these tokens (N,) int64, in (row, position) order.

    ``logits`` (B, W, V) are those of the columns from ``first`` on, of all (W = T) or of a rank's share of them;
    ``input_ids`` (B, T) int64; ``response`` (B, T) bool. Raises ValueError where a row starts with a response token,
    which no logits score.
    """
    if bool(response[:, :LABEL_SHIFT].any()):
        raise ValueError("a response token at position 0 has no logits before it")
    ahead = slice(first + LABEL_SHIFT, first + LABEL_SHIFT + logits.shape[1])
    scored = response[:, ahead]
    return logits[:, : scored.shape[1]][scored], input_ids[:, ahead][scored]
