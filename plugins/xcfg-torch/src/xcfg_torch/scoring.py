"""Teacher forcing: fixed tokens through a live model, each response token scored by the logits before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from xcfg.errors import PluginError
from xcfg.model.json import Json
from xcfg.model.sample import Samples, TokenBatch, concatenate
from xcfg.plugin import Scored, ScoreRequest
from xcfg_torch.attention_watch import watch_attention
from xcfg_torch.collate import SEQUENTIAL, Collation, Padded, Part, Step, pad, steps_of_rank
from xcfg_torch.determinism import deterministic_algorithms
from xcfg_torch.limits import check_batch
from xcfg_torch.live import Live
from xcfg_torch.rank_facts import rank_info
from xcfg_torch.semantics import logprob_semantics, max_positions, text_config
from xcfg_torch.shift import select
from xcfg_torch.shift_detector import check_shift

if TYPE_CHECKING:
    import torch

OPERATOR = "selected_logprob"


@frozen(kw_only=True)
class Place:
    """Where a rank stands among all, and the parallel modes it takes part in.

    ``peers`` ranks, neighbours in the order of ranks, compute the same rows together; the first of them hands these in.
    """

    rank: int = 0
    world_size: int = 1
    parallel: Mapping[str, int] = {}
    peers: int = 1


def score_batch(live: Live, batch: TokenBatch, request: ScoreRequest, place: Place) -> Scored:
    """Score this rank's rows of ``batch``. Raises InvalidInput for a batch the model cannot score.

    Without a ``batch_size`` among the settings each sequence passes alone. Raises PluginError where no backend is bound
    for ``selected_logprob``.
    """
    columns = live.columns
    check_batch(batch, columns=columns, positions=max_positions(live.model))
    operator = _operator(request)
    ranks = place.peers
    live.collation = _collation(request.settings, multiple=live.share.size if live.share else 1)
    check_shift(select, padding_side=live.collation.padding_side)
    lengths = [len(prompt) + len(response) for prompt, response in zip(batch.prompts, batch.responses, strict=True)]
    live.steps = steps_of_rank(lengths, live.collation, rank=place.rank // ranks, world_size=place.world_size // ranks)
    live.sequences, live.operators = len(batch.ids), request.operators
    live.deterministic = bool(request.settings.get("deterministic"))
    live.seen.reset()
    parts: list[Samples] = []
    with watch_attention(live.seen.attention):
        for step in live.steps:
            padded, logprobs = _forward(live, batch, step, operator)
            if step.part is Part.OWN and place.rank % ranks == 0:
                parts.append(_samples(batch, step.rows, padded, logprobs, place.rank))
    info = rank_info(live, rank=place.rank, world_size=place.world_size, parallel=place.parallel)
    return Scored(samples=concatenate(parts), rank=info, semantics=logprob_semantics(live.model, columns=columns))


def _operator(request: ScoreRequest) -> Callable[..., Any]:
    operator: Callable[..., Any] | None = request.operators.get(OPERATOR)
    if operator is None:
        raise PluginError(
            f"no kernel backend is bound for {OPERATOR}", where="logp.backend", hint="pip install xcfg-kernels"
        )
    return operator


def _collation(settings: Mapping[str, Json], *, multiple: int) -> Collation:
    return Collation(
        size=int(settings.get("batch_size") or 1),
        micro=settings.get("micro_size"),
        padding_side=str(settings.get("padding_side") or "right"),
        positions=str(settings.get("position_ids") or SEQUENTIAL),
        multiple=multiple,
    )


def _forward(live: Live, batch: TokenBatch, step: Step, operator: Callable[..., Any]) -> tuple[Padded, np.ndarray]:
    import torch

    assert live.collation is not None
    pad_id = getattr(text_config(live.model), "pad_token_id", None) or 0
    padded = pad(batch, step, live.collation, pad_id=pad_id, device=live.device)
    with torch.no_grad():
        output = live.model(
            input_ids=padded.input_ids,
            attention_mask=padded.attention_mask,
            position_ids=padded.position_ids,
            use_cache=False,
        )
        first = live.share.first(step.width) if live.share else 0
        rows, targets = select(output.logits, padded.input_ids, padded.response, first=first)
        _note_raw(live, output.logits, rows, padded.response, first)
        rows, beside = live.head.for_kernel(rows) if live.head else (rows, {})
        live.seen.operator_columns.add(int(rows.shape[-1]))
        with deterministic_algorithms(live.deterministic):
            logprobs = operator(rows, targets, **beside)
            live.seen.deterministic.add(torch.are_deterministic_algorithms_enabled())
        if live.share:
            logprobs = live.share.whole(logprobs, padded.response)
    return padded, logprobs.to(device="cpu", dtype=torch.float32).numpy()


def _note_raw(live: Live, logits: torch.Tensor, rows: torch.Tensor, response: torch.Tensor, first: int) -> None:
    """Compare, bit for bit, the first row given to the operator with the model's own logits before that token."""
    import torch

    if not len(rows):
        return
    places = ((int(row), int(column) - 1 - first) for row, column in response.nonzero())
    row, column = next((row, column) for row, column in places if 0 <= column < logits.shape[1])
    own, given = logits[row, column].contiguous(), rows[0].contiguous()
    same = own.dtype == given.dtype and torch.equal(own.view(torch.uint8), given.view(torch.uint8))
    live.seen.raw = same and live.seen.raw is not False


def _samples(batch: TokenBatch, rows: Sequence[int], padded: Padded, logprobs: np.ndarray, rank: int) -> Samples:
    """The rows of one forward pass; tokens and positions are read from the tensors that went in."""
    real = padded.attention_mask.bool()
    return Samples(
        sequence=list(rows),
        rank=[rank] * len(rows),
        prompt_length=[len(batch.prompts[row]) for row in rows],
        response_length=[len(batch.responses[row]) for row in rows],
        input_ids=padded.input_ids[real].cpu().numpy(),
        position_ids=padded.position_ids[real].cpu().numpy(),
        action_mask=np.array([active for row in rows for active in batch.action_masks[row]], dtype=bool),
        logprobs=logprobs,
    )
