"""One call for a training loop: arrays in, metrics and verdict out; no file, no plugin, no engine."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from xcfg.builtin.contracts import shipped_contracts
from xcfg.comparator.arrays import Census, census
from xcfg.comparator.exchange import ALONE, Exchange, gather_texts
from xcfg.comparator.judging import judged
from xcfg.comparator.layout import array_pairs
from xcfg.comparator.together import agreed, announcing, everyones
from xcfg.comparator.tolerance import row
from xcfg.comparator.values import POSITIVE_ROUNDING
from xcfg.errors import InvalidInput
from xcfg.model.dtypes import normal_dtype
from xcfg.model.result import Comparison
from xcfg.model.status import Status
from xcfg.model.tolerance import DEFAULT_CONTRACT, ToleranceContract
from xcfg.plugin.tolerance import load_contract

__all__ = ["ALONE", "announcing", "compare_logprobs"]

SHIPPED = next(contract for contract in shipped_contracts() if contract.ref.id == DEFAULT_CONTRACT)
"""Read with the module, so that no call opens a file."""
ASSUMED = (
    *("checkpoint", "weight_version", "prompt_ids", "response_ids", "position_ids"),
    *("temperature", "top_p", "top_k", "logprobs_mode"),
)
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
    contract: ToleranceContract | Path | str | None = None,
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
    active. ``token_ids`` (the same layout) and ``sequence_ids`` (B, distinct) name the worst token, of equals the
    first in order of sequence id and position; without ids a sequence is its row's number.

    ``dtype`` is the lower-precision of the two compute dtypes and chooses the row of ``contract`` (a path, a value or
    the shipped one). ``clip_range`` (low, high) bounds the ratio of ``clipfrac0``. ``exchange`` joins the parts that
    several processes hold, each with its ``rank``, on the same terms; a part may be empty. All get the same result;
    a finding about one process's part has its rank in the evidence.

    Raises InvalidInput where shapes, dtypes, lengths or options do not fit, on every process of an exchange where they
    do not on one. What the values themselves are (NaN, positive, nothing active, both sides the same memory) is the
    status of the result; only ``Status.PASS`` is a pass. Metrics are those of :mod:`xcfg.comparator.drift`; per-rank
    metrics and the semantic identity need recorded files or live engines.
    """
    with announcing(exchange):
        pairs = array_pairs(rollout, training, mask, lengths, token_ids, sequence_ids, index(rank))
        chosen = _contract(contract)
        clip = _clip(clip_range, chosen)
        judging = row(_dtype(dtype), chosen)
    terms = {"dtype": judging.dtype, "contract": chosen.ref.digest, "clip_range": list(clip)}
    parts = agreed(terms, {"rank": pairs.rank, "same_memory": pairs.same_memory}, exchange)
    base = Comparison(
        status=Status.INVALID_ARTIFACT,
        dtype=judging.dtype,
        threshold=judging.threshold,
        limits=judging.limits,
        clip_interval=clip,
        contract=chosen.ref,
        assumed=(*ASSUMED, "mask") if mask is None else ASSUMED,
    )
    if same := [part["rank"] for part in parts if part["same_memory"]]:
        reason = f"both sides are the same logprobs in memory, not two measurements, on rank {same[0]}"
        return evolve(base, reason=reason)
    found = _everywhere(census(pairs), exchange)
    base = evolve(base, active_tokens=found.active)
    if found.positive:
        reason = f"{found.positive} active logprobs are above {POSITIVE_ROUNDING:g}, first {found.first}"
        return evolve(base, reason=reason)
    if found.not_finite:
        reason = f"{found.not_finite} active logprobs are not finite, first {found.first}"
        return evolve(base, status=Status.NON_FINITE, reason=reason)
    if not found.active:
        return evolve(base, status=Status.ZERO_ACTIVE_TOKENS, reason="no token is active")
    comparison = judged(base, pairs, judging, clip, exchange=exchange)
    return evolve(comparison, findings=everyones(comparison.findings, exchange))


def _dtype(dtype: str) -> str:
    if not isinstance(dtype, str):
        raise InvalidInput(f"the name of a dtype is needed, not {dtype!r}", where="dtype", hint="as in 'bfloat16'")
    return normal_dtype(dtype)


def _contract(contract: ToleranceContract | Path | str | None) -> ToleranceContract:
    if contract is None:
        return SHIPPED
    if isinstance(contract, ToleranceContract):
        return contract
    if isinstance(contract, str | Path):
        return load_contract(Path(contract))
    raise InvalidInput(f"a path or a ToleranceContract is needed, not {contract!r}", where="contract")


def _clip(clip_range: tuple[float, float] | None, contract: ToleranceContract) -> tuple[float, float]:
    if clip_range is None:
        return contract.clip_interval
    try:
        low, high = (float(bound) for bound in clip_range)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"two numbers are needed: {error}", where="clip_range") from error
    if not 0 <= low <= 1 <= high:
        hint = "the bounds of the ratio, as (0.8, 1.2), not their distances from 1"
        raise InvalidInput(f"({low:g}, {high:g}) must hold 1 and start at 0 or above", where="clip_range", hint=hint)
    return low, high


def _everywhere(mine: Census, exchange: Exchange) -> Census:
    """The counts of all processes, and the first place of the worse kind that the lowest rank of any names."""
    counts = np.stack(exchange.gather(np.array([mine.active, mine.not_finite, mine.positive], float)))
    active, not_finite, positive = (int(count) for count in counts.sum(axis=0))
    texts = gather_texts(mine.first, exchange)
    telling = np.flatnonzero(counts[:, 2] if positive else counts[:, 1])
    first = texts[int(telling[0])] if len(telling) else ""
    return Census(active=active, not_finite=not_finite, positive=positive, first=first)
