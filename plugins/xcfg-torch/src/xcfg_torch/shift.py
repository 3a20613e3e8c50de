"""The label shift of teacher forcing: the only place where a token meets the logits that score it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LABEL_SHIFT = 1
"""Logits at position t - 1 score the token at position t."""


def select(
    logits: torch.Tensor, input_ids: torch.Tensor, response: torch.Tensor, *, columns: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits (N, V) that score N response tokens, and these tokens (N,) int64, in (row, position) order.

    ``logits`` (B, W, V) are those of ``columns`` (W,) int64, ascending, of the rows, or of all (W = T); ``input_ids``
    (B, T) int64; ``response`` (B, T) bool. Raises ValueError where a row starts with a response token, which no logits
    score.
    """
    if bool(response[:, :LABEL_SHIFT].any()):
        raise ValueError("a response token at position 0 has no logits before it")
    scored, tokens = response.roll(-LABEL_SHIFT, dims=1), input_ids.roll(-LABEL_SHIFT, dims=1)
    if columns is not None:
        scored, tokens = scored[:, columns], tokens[:, columns]
    return logits[scored], tokens[scored]
