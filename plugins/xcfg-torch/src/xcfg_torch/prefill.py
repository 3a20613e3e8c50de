"""Rows that pass a model in one or more runs of columns, with keys and values kept in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def prefill(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, *, chunk: int | None
) -> tuple[torch.Tensor, Any]:
    """Logits (B, T, V) of all columns, taken ``chunk`` at a time, and the cache of their keys and values."""
    import torch

    parts: list[torch.Tensor] = []
    cache: Any = None
    start = 0
    for width in chunks(ids.shape[1], chunk):
        own = slice(start, start + width)
        output = model(
            input_ids=ids[:, own],
            attention_mask=mask[:, : own.stop],
            position_ids=positions[:, own],
            past_key_values=cache,
            use_cache=True,
        )
        cache, start = output.past_key_values, own.stop
        parts.append(output.logits)
    return torch.cat(parts, dim=1), cache


def chunks(columns: int, chunk: int | None) -> tuple[int, ...]:
    """Columns of each pass over ``columns``, at most ``chunk`` a pass; None takes them all at once."""
    size = chunk or columns
    return tuple(min(size, columns - start) for start in range(0, columns, size))
