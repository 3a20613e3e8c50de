"""Taking a micro-batch through a model by a route."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcfg.errors import UnsupportedError
from xcfg_torch.collate import Padded
from xcfg_torch.decoding import decoded_logits
from xcfg_torch.full_attention import full_attention_fault
from xcfg_torch.packing import mask_for
from xcfg_torch.prefill import chunks, prefill
from xcfg_torch.route import Route

if TYPE_CHECKING:
    import torch


def check_route(model: Any, route: Route) -> None:
    """Raise UnsupportedError for a model whose layers keep something else than all keys and values."""
    fault = full_attention_fault(model) if route.cached else ""
    if fault:
        raise UnsupportedError(f"{fault}, whose cache is not that of all columns before", where="torch.forward")


def planned_widths(route: Route, padded: Padded) -> tuple[int, ...]:
    """Columns of each pass over a micro-batch."""
    if not route.decode:
        return chunks(padded.input_ids.shape[1], route.chunk)
    prompts, responses = padded.prompt_lengths, padded.response_lengths
    return (*chunks(int(prompts.max()), route.chunk), *[1] * (int(responses.max()) - 1))


def logits_of(model: Any, padded: Padded, route: Route, *, padding_side: str) -> torch.Tensor:
    """Logits (B, T, V); decoding leaves zeros where no response token is scored by them."""
    if route.decode:
        return decoded_logits(model, padded, chunk=route.chunk, padding_side=padding_side)
    if route.chunk is None:
        mask = padded.attention_mask if padded.blocks is None else mask_for(model, padded.blocks)
        output = model(
            input_ids=padded.input_ids, attention_mask=mask, position_ids=padded.position_ids, use_cache=False
        )
        whole: torch.Tensor = output.logits
        return whole
    return prefill(model, padded.input_ids, padded.attention_mask, padded.position_ids, chunk=route.chunk)[0]
