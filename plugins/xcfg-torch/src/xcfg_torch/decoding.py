"""Forced decode: prompts pass first, then the response tokens one at a time, with keys and values kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcfg_torch.prefill import prefill

if TYPE_CHECKING:
    import torch

    from xcfg_torch.collate import Padded


def decoded_logits(model: Any, padded: Padded, *, chunk: int | None, padding_side: str) -> torch.Tensor:
    """Logits (B, T, V) at the columns that score response tokens, zeros elsewhere.

    Prompts are padded to the longest on ``padding_side``; a row leaves the batch when its response ends. The last
    response token is not passed: nothing is scored after it.
    """
    import torch

    rows, first = torch.arange(len(padded.input_ids), device=padded.input_ids.device), padded.first_columns
    prompts, responses = padded.prompt_lengths, padded.response_lengths
    ids, mask, positions = _prompts(padded, padding_side)
    logits, cache = prefill(model, ids, mask, positions, chunk=chunk)
    ends = mask.shape[1] - 1 if padding_side == "left" else prompts - 1
    scores = logits.new_zeros((*padded.input_ids.shape, logits.shape[-1]))
    last = first + prompts - 1
    scores[rows, last] = logits[rows, ends]
    for done in range(int(responses.max()) - 1):
        stay = responses[rows] > done + 1
        if not bool(stay.all()):
            rows, mask = rows[stay], mask[stay]
            cache.batch_select_indices(stay.nonzero()[:, 0])
        columns = last[rows] + done + 1
        mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=1)
        output = model(
            input_ids=padded.input_ids[rows, columns][:, None],
            attention_mask=mask,
            position_ids=padded.position_ids[rows, columns][:, None],
            past_key_values=cache,
            use_cache=True,
        )
        cache = output.past_key_values
        scores[rows, columns] = output.logits[:, 0]
    return scores


def _prompts(padded: Padded, side: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids, mask and positions (B, P) of the prompts alone; what stands on padding is masked."""
    import torch

    widest = int(padded.prompt_lengths.max())
    places = torch.arange(widest, device=padded.input_ids.device)
    offset = padded.prompt_lengths[:, None] - widest if side == "left" else 0 * padded.prompt_lengths[:, None]
    inside = places + offset  # place in the prompt of each column, negative or past its end on padding
    real = (inside >= 0) & (inside < padded.prompt_lengths[:, None])
    columns = (padded.first_columns[:, None] + inside).clamp(0, padded.input_ids.shape[1] - 1)
    ids, positions = padded.input_ids.gather(1, columns), padded.position_ids.gather(1, columns)
    return ids, real.to(padded.attention_mask.dtype), positions * real
