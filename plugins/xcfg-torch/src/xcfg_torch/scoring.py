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
from xcfg_torch.packing import pack
from xcfg_torch.rank_facts import rank_info
from xcfg_torch.route import route_of
from xcfg_torch.routes import check_route, logits_of, planned_widths
from xcfg_torch.sdpa_kernels import only_kernel
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
    live.collation = _collation(request.settings, multiple=live.share.multiple if live.share else 1)
    check_shift(select, padding_side=live.collation.padding_side)
    lengths = [len(prompt) + len(response) for prompt, response in zip(batch.prompts, batch.responses, strict=True)]
    live.steps = steps_of_rank(lengths, live.collation, rank=place.rank // ranks, world_size=place.world_size // ranks)
    live.sequences, live.operators = len(batch.ids), request.operators
    live.deterministic = bool(request.settings.get("deterministic"))
    live.route, live.widths, live.sdpa_kernel = route_of(request.settings), [], request.settings.get("sdpa_kernel")
    check_route(live.model, live.route)
    live.seen.reset()
    parts: list[Samples] = []
    with watch_attention(live.seen.attention, kernels=live.seen.kernels, norms=live.seen.norms):
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
        packed=bool(settings.get("packing")),
    )


def _forward(live: Live, batch: TokenBatch, step: Step, operator: Callable[..., Any]) -> tuple[Padded, np.ndarray]:
    import torch

    assert live.collation is not None
    pad_id = getattr(text_config(live.model), "pad_token_id", None) or 0
    if live.collation.packed:
        padded = pack(batch, step, device=live.device)
    else:
        padded = pad(batch, step, live.collation, pad_id=pad_id, device=live.device)
    live.widths.append(planned_widths(live.route, padded))
    with torch.no_grad():
        with only_kernel(live.sdpa_kernel):
            logits = logits_of(live.model, padded, live.route, padding_side=live.collation.padding_side)
        columns = live.share.columns(step.width).to(live.device) if live.share else None
        rows, targets = select(logits, padded.input_ids, padded.response, columns=columns)
        _note_raw(live, logits, rows, padded.response, columns)
        rows, beside = live.head.for_kernel(rows) if live.head else (rows, {})
        live.seen.operator_columns.add(int(rows.shape[-1]))
        with deterministic_algorithms(live.deterministic):
            logprobs = operator(rows, targets, **beside)
            live.seen.deterministic.add(torch.are_deterministic_algorithms_enabled())
        if live.share:
            logprobs = live.share.whole(logprobs, padded.response)
    return padded, logprobs.to(device="cpu", dtype=torch.float32).numpy()


def _note_raw(
    live: Live, logits: torch.Tensor, rows: torch.Tensor, response: torch.Tensor, columns: torch.Tensor | None
) -> None:
    """Compare, bit for bit, the first row given to the operator with the model's own logits before that token."""
    import torch

    if not len(rows):
        return
    own = {int(column): at for at, column in enumerate(range(logits.shape[1]) if columns is None else columns.tolist())}
    places = ((int(row), own.get(int(column) - 1)) for row, column in response.nonzero())
    row, at = next((row, at) for row, at in places if at is not None)
    first, given = logits[row, at].contiguous(), rows[0].contiguous()
    same = first.dtype == given.dtype and torch.equal(first.view(torch.uint8), given.view(torch.uint8))
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
