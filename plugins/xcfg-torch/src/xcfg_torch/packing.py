"""Several sequences end to end in one row, each of which attends to itself alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcfg.errors import UnsupportedError
from xcfg.model.sample import TokenBatch
from xcfg_torch.collate import Padded, Step
from xcfg_torch.full_attention import full_attention_fault

if TYPE_CHECKING:
    import torch

WHERE = "layout.packing"


def pack(batch: TokenBatch, step: Step, *, device: torch.device) -> Padded:
    """The sequences of one step in one row (1, T), in the order of the batch, without padding.

    Positions count from 0 in each sequence.
    """
    import torch

    ids: list[int] = []
    positions: list[int] = []
    response: list[bool] = []
    blocks: list[int] = []
    for block, row in enumerate(step.rows):
        prompt, answer = batch.prompts[row], batch.responses[row]
        count = len(prompt) + len(answer)
        ids += [*prompt, *answer]
        positions += range(count)
        response += [False] * len(prompt) + [True] * len(answer)
        blocks += [block] * count
    return Padded(
        input_ids=torch.tensor([ids], device=device),
        attention_mask=torch.ones((1, len(ids)), dtype=torch.int64, device=device),
        position_ids=torch.tensor([positions], device=device),
        response=torch.tensor([response], device=device),
        blocks=torch.tensor([blocks], device=device),
    )


def block_causal(blocks: torch.Tensor) -> torch.Tensor:
    """(B, 1, T, T) bool: True where a query may see a key, that of its own block and not after it."""
    import torch

    places = torch.arange(blocks.shape[1], device=blocks.device)
    own = blocks[:, :, None] == blocks[:, None, :]
    return (own & (places[:, None] >= places))[:, None]


def mask_for(model: Any, blocks: torch.Tensor) -> torch.Tensor:
    """The block-causal mask as the model's attention takes it: eager attention adds it to its scores.

    Raises UnsupportedError for a model with layers that mix columns in other ways than full causal attention.
    """
    import torch

    fault = full_attention_fault(model)
    if fault:
        raise UnsupportedError(f"{fault}, and only full causal attention can be held to blocks of a row", where=WHERE)
    seen = block_causal(blocks)
    if model.config._attn_implementation != "eager":
        return seen
    return torch.zeros_like(seen, dtype=model.dtype).masked_fill(~seen, torch.finfo(model.dtype).min)
