"""Logprobs reported while sampling against the production configuration's forced decode of the same tokens."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
from attrs import evolve

from xcfg.comparator.compare import Judged, compare
from xcfg.comparator.frozen import FrozenTokens
from xcfg.comparator.verdict import worse
from xcfg.errors import ArtifactError
from xcfg.model.attempt import SideResult
from xcfg.model.knob import SourceClass
from xcfg.model.result import Finding
from xcfg.model.sample import TokenBatch, offsets, ragged_index
from xcfg.model.tolerance import ToleranceContract


def with_sampled_logprobs(forced: SideResult, sampled: TokenBatch) -> SideResult | None:
    """The production rollout with the logprobs reported while sampling in place of the forced ones.

    None for a recorded batch, which has none. Raises ArtifactError where the batch is not the one that was scored.
    """
    if sampled.sampled_logprobs is None:
        return None
    place = {name: index for index, name in enumerate(sampled.ids)}
    samples = forced.samples
    inside = (samples.sequence >= 0) & (samples.sequence < len(forced.sequence_ids))
    if not inside.all() or not set(forced.sequence_ids) <= set(place):
        raise ArtifactError("the sampled batch has other sequences than the rollout side scored")
    of_side = np.array([place[name] for name in forced.sequence_ids], dtype=np.int64)
    rows = of_side[samples.sequence]
    lengths = np.array([len(row) for row in sampled.responses], dtype=np.int64)
    flat = np.fromiter(chain.from_iterable(sampled.sampled_logprobs), dtype=np.float32, count=int(lengths.sum()))
    tokens = np.fromiter(chain.from_iterable(sampled.responses), dtype=np.int64, count=int(lengths.sum()))
    if not np.array_equal(lengths[rows], samples.response_length):
        raise ArtifactError("the responses of the sampled batch have other lengths than those the rollout side scored")
    at = ragged_index(offsets(lengths)[rows], lengths[rows])
    response = ragged_index(samples.input_offsets[:-1] + samples.prompt_length, samples.response_length)
    if not np.array_equal(tokens[at], samples.input_ids[response]):
        raise ArtifactError("the responses of the sampled batch are other tokens than those the rollout side scored")
    return evolve(forced, samples=evolve(samples, logprobs=flat[at]))


def check_sampled(forced: SideResult, sampled: TokenBatch) -> Finding | None:
    """A finding of class execution where forced decode does not reproduce the sampled logprobs bit for bit.

    Only active tokens count. None where it does, or for a recorded batch. Raises ArtifactError as above.
    """
    other = with_sampled_logprobs(forced, sampled)
    if other is None:
        return None
    active = forced.samples.action_mask
    mine, theirs = forced.samples.logprobs, other.samples.logprobs
    unequal = np.flatnonzero(active & (mine.view(np.uint32) != theirs.view(np.uint32)))
    if not len(unequal):
        return None
    with np.errstate(invalid="ignore"):
        difference = np.abs(mine[active].astype(np.float64) - theirs[active])
    evidence = {
        "tokens_compared": int(active.sum()),
        "tokens_unequal": len(unequal),
        "max_abs_difference": _finite(float(np.max(difference))),
        "mean_abs_difference": _finite(float(np.mean(difference))),
        "first": _first(forced, int(unequal[0]), float(mine[unequal[0]]), float(theirs[unequal[0]])),
    }
    return Finding(
        source_class=SourceClass.EXECUTION.value,
        subclass="forced decode does not reproduce sampling",
        rule="sampled_against_forced",
        evidence=evidence,
        advice="the production rollout gives other logprobs when the sampled tokens are forced; the case takes the "
        "worse of the two verdicts",
    )


def compare_sampled(
    rollout: SideResult,
    training: SideResult,
    sampled: TokenBatch,
    contract: ToleranceContract,
    *,
    baseline_dtype: str = "",
    clip_range: tuple[float, float] | None = None,
    frozen: FrozenTokens | None = None,
) -> Judged:
    """As ``compare``, for the production case: judged on forced and on sampled logprobs, the worse of the two.

    A pair that is not comparable stays what it is: the sampled logprobs could not make it better. Without ``frozen``
    raises ArtifactError where the batch is not the one that was scored.
    """

    def judge(side: SideResult) -> Judged:
        return compare(side, training, contract, baseline_dtype=baseline_dtype, clip_range=clip_range, frozen=frozen)

    judged = judge(rollout)
    if judged[1] is None:
        return judged
    finding = check_sampled(rollout, sampled)
    other = with_sampled_logprobs(rollout, sampled)
    if finding is None or other is None:
        return judged
    second = judge(other)
    comparison, tokens = judged if worse(judged[0], second[0]) is judged[0] else second
    return evolve(comparison, findings=(*comparison.findings, finding)), tokens


def _first(forced: SideResult, at: int, mine: float, theirs: float) -> dict[str, object]:
    starts = forced.samples.response_offsets
    row = int(np.searchsorted(starts, at, side="right")) - 1
    return {
        "sequence": forced.sequence_ids[int(forced.samples.sequence[row])],
        "position": at - int(starts[row]),
        "rank": int(forced.samples.rank[row]),
        "forced_logp": _finite(mine),
        "sampled_logp": _finite(theirs),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
