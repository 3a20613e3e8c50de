"""One call for a training loop: arrays in, metrics and verdict out; no file, no plugin, no engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from xcfg.builtin.contracts import shipped_contracts
from xcfg.comparator.arrays import Census, census
from xcfg.comparator.exchange import ALONE, Exchange, gather_texts
from xcfg.comparator.judging import judged
from xcfg.comparator.layout import array_pairs
from xcfg.comparator.tolerance import row
from xcfg.comparator.values import POSITIVE_ROUNDING
from xcfg.model.dtypes import normal_dtype
from xcfg.model.result import Comparison
from xcfg.model.status import Status
from xcfg.model.tolerance import DEFAULT_CONTRACT, ToleranceContract
from xcfg.plugin.tolerance import load_contract

__all__ = ["compare_logprobs"]

ASSUMED = ("checkpoint", "response_ids", "position_ids", "temperature", "top_p", "top_k", "logprobs_mode")
"""What arrays of logprobs do not tell, and the caller vouches for."""


def compare_logprobs(
    rollout: Any,
    training: Any,
    *,
    dtype: str,
    mask: Any = None,
    lengths: Any = None,
    token_ids: Any = None,
    sequence_ids: Sequence[str] | None = None,
    contract: ToleranceContract | Path | None = None,
    clip_range: tuple[float, float] | None = None,
    rank: int = 0,
    exchange: Exchange = ALONE,
) -> Comparison:
    """Judge the selected tokens' logprobs of a training engine against those of a rollout engine.

    ``rollout`` and ``training`` are natural-log probabilities (nats) of the same tokens, in any of three layouts:
    padded (B, L), with a ``mask`` (B, L) that is true at active tokens; ragged (N,), with the ``lengths`` (B,) of the
    sequences; or a list of B arrays (L_i,), with ``mask`` and ``token_ids`` as such lists too. Each is what numpy can
    view without a copy (an array, or anything with DLPack or the buffer protocol on the CPU), float16, float32 or
    float64; for tensors of any device and dtype see ``xcfg_torch.compare_logprobs``. Without a mask every token is
    active. ``token_ids`` (the same layout) and ``sequence_ids`` (B) name the worst token.

    ``dtype`` is the lower-precision of the two compute dtypes and chooses the row of ``contract`` (a path, a value or
    the shipped one). ``clip_range`` (low, high) bounds the ratio of ``clipfrac0``. ``exchange`` joins the parts that
    several processes hold, each with its ``rank``: all get the same result.

    Raises InvalidInput where shapes, dtypes or lengths do not fit. What the values themselves are (NaN, positive,
    nothing active) is the status of the result; only ``Status.PASS`` is a pass. The definitions are those of
    :mod:`xcfg.comparator.drift`; per-rank metrics, tokens and identity need recorded files or live engines.
    """
    pairs = array_pairs(rollout, training, mask, lengths, token_ids, sequence_ids, rank)
    chosen = _contract(contract)
    judging = row(normal_dtype(dtype), chosen)
    base = Comparison(
        status=Status.INVALID_ARTIFACT,
        dtype=judging.dtype,
        threshold=judging.threshold,
        limits=judging.limits,
        clip_interval=clip_range or chosen.clip_interval,
        contract=chosen.ref,
        assumed=ASSUMED,
    )
    if np.shares_memory(pairs.rollout, pairs.train):
        return evolve(base, reason="both sides are the same logprobs in memory, not two measurements")
    found = _everywhere(census(pairs), exchange)
    base = evolve(base, active_tokens=found.active)
    if found.positive:
        reason = f"{found.positive} active logprobs are above {POSITIVE_ROUNDING:g}{found.first}"
        return evolve(base, reason=reason)
    if found.not_finite:
        reason = f"{found.not_finite} active logprobs are not finite{found.first}"
        return evolve(base, status=Status.NON_FINITE, reason=reason)
    if not found.active:
        return evolve(base, status=Status.ZERO_ACTIVE_TOKENS, reason="no token is active")
    return judged(base, pairs, judging, clip_range or chosen.clip_interval, exchange=exchange)


def _contract(contract: ToleranceContract | Path | None) -> ToleranceContract:
    if isinstance(contract, ToleranceContract):
        return contract
    if contract is not None:
        return load_contract(contract)
    return next(shipped for shipped in shipped_contracts() if shipped.ref.id == DEFAULT_CONTRACT)


def _everywhere(mine: Census, exchange: Exchange) -> Census:
    """The counts of all processes, and the first place that any of them names."""
    counts = np.sum(np.stack(exchange.gather(np.array([mine.active, mine.not_finite, mine.positive], float))), axis=0)
    place = next((text for text in gather_texts(mine.first, exchange) if text), "")
    active, not_finite, positive = (int(count) for count in counts)
    return Census(active=active, not_finite=not_finite, positive=positive, first=f", first {place}" if place else "")
