"""Shape of a side's evidence: every rank once, every sequence, no row twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from xcfg.comparator.defect import Defect
from xcfg.model.attempt import SideResult
from xcfg.model.status import Status

_SHOWN = 5


def artifact_defects(side: str, result: SideResult) -> Iterator[Defect]:
    """A defect for each way in which the ranks and rows of one side are not what was launched."""
    for reason in (*_ranks(result), *_sequences(result)):
        yield Defect(Status.INVALID_ARTIFACT, f"{side} {reason}")


def alias_defects(rollout: SideResult, training: SideResult) -> Iterator[Defect]:
    """A defect where the training logprobs are the rollout's own array: drift would vanish by construction."""
    if np.shares_memory(rollout.samples.logprobs, training.samples.logprobs):
        yield Defect(Status.INVALID_ARTIFACT, "both sides are the same logprobs in memory, not two measurements")


def _ranks(result: SideResult) -> Iterator[str]:
    counts = Counter(info.rank for info in result.ranks)
    expected = range(result.expected_ranks)
    if result.expected_ranks < 1:
        yield f"launched {result.expected_ranks} ranks"
    if missing := [rank for rank in expected if rank not in counts]:
        yield f"lacks {_some('rank', missing)} of {result.expected_ranks}"
    if twice := sorted(rank for rank, count in counts.items() if count > 1):
        yield f"has {_some('rank', twice)} more than once"
    if extra := sorted(rank for rank in counts if rank not in expected):
        yield f"has {_some('rank', extra)} but launched {result.expected_ranks}"
    if len(sizes := sorted({info.world_size for info in result.ranks})) > 1:
        yield f"ranks disagree about the world size: {sizes}"
    if foreign := sorted(set(np.unique(result.samples.rank).tolist()) - set(counts)):
        yield f"has rows of {_some('rank', foreign)} without metadata"


def _sequences(result: SideResult) -> Iterator[str]:
    ids, samples = result.sequence_ids, result.samples
    if twice := [name for name, count in Counter(ids).items() if count > 1]:
        yield f"has sequence id {_some('', twice)} more than once"
    index, counts = np.unique(samples.sequence, return_counts=True)
    if strange := index[(index < 0) | (index >= len(ids))].tolist():
        yield f"has rows of {_some('sequence index', strange)} but {len(ids)} sequence ids"
    if len(missing := np.setdiff1d(np.arange(len(ids)), index)):
        yield f"lacks {_some('sequence', [ids[int(place)] for place in missing[:_SHOWN]], len(missing))}"
    if counts.max(initial=0) > 1:
        order = np.lexsort((samples.rank, samples.sequence))
        sequence, rank = samples.sequence[order], samples.rank[order]
        again = np.flatnonzero((sequence[1:] == sequence[:-1]) & (rank[1:] == rank[:-1]))
        if len(again):
            first = int(again[0])
            yield f"has sequence {_name(ids, int(sequence[first]))} twice on rank {int(rank[first])}"


def _name(ids: Sequence[str], index: int) -> str:
    return repr(ids[index]) if 0 <= index < len(ids) else f"index {index}"


def _some(noun: str, items: Sequence[object], count: int | None = None) -> str:
    total = len(items) if count is None else count
    shown = ", ".join(repr(item) for item in items[:_SHOWN])
    return f"{noun} {shown}".strip() + (f" and {total - _SHOWN} more" if total > _SHOWN else "")
