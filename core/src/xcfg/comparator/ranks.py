"""Ranks: metrics of each pair of ranks, and replicas that disagree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from xcfg.comparator.blocks import TokenPairs
from xcfg.comparator.drift import drift
from xcfg.comparator.pairing import RowPairs, SideRows
from xcfg.model.attempt import SideResult
from xcfg.model.json import Json
from xcfg.model.knob import SourceClass
from xcfg.model.result import Finding, RankComparison
from xcfg.model.sample import RankInfo


def rank_groups(pairs: RowPairs) -> Iterator[np.ndarray]:
    """The pairs of rows of each (rollout rank, training rank), by rank; a group holds a sequence at most once."""
    rollout, training = pairs.rollout.rank[pairs.left], pairs.training.rank[pairs.right]
    order = np.lexsort((training, rollout))
    if not len(order):
        return
    rollout, training = rollout[order], training[order]
    edges = np.flatnonzero((rollout[1:] != rollout[:-1]) | (training[1:] != training[:-1])) + 1
    yield from np.split(order, edges)


def worst_pairs(pairs: RowPairs) -> np.ndarray:
    """One pair of rows a sequence: that of largest max abs(d), NaN above all; ties to the lowest ranks."""
    if len(pairs.left) == len(pairs.ids):
        return np.arange(len(pairs.left))
    largest = np.zeros(len(pairs.left))
    for group in rank_groups(pairs):
        tokens = pairs.tokens(group)
        if not len(tokens.token):
            continue
        with np.errstate(invalid="ignore"):
            absolute = np.abs(tokens.train_logp.astype(np.float64) - tokens.rollout_logp)
        absolute = np.nan_to_num(absolute, nan=np.inf)
        starts = np.cumsum(tokens.row_length) - tokens.row_length
        rows = np.searchsorted(pairs.sequence[group], tokens.row_sequence)  # a group has a sequence once
        largest[group[rows]] = np.maximum.reduceat(absolute, starts)
    order = np.lexsort((np.arange(len(largest)), -largest, pairs.sequence))
    _, first = np.unique(pairs.sequence[order], return_index=True)
    chosen: np.ndarray = order[first]
    return chosen


def rank_comparisons(
    pairs: RowPairs,
    rollout: SideResult,
    training: SideResult,
    clip_interval: tuple[float, float],
    judged: Mapping[str, float],
) -> tuple[RankComparison, ...]:
    """Metrics of every pair of ranks that shares a sequence, replicas included, never merged.

    ``judged`` are the metrics of the whole comparison: those of the pair where there is only one.
    """
    left = {info.rank: metadata(info) for info in rollout.ranks}
    right = {info.rank: metadata(info) for info in training.ranks}
    groups = list(rank_groups(pairs))
    found = []
    for group in groups:
        active = pairs.active_tokens(group)
        metrics = judged if len(groups) == 1 else {}
        if active and not metrics:
            metrics = drift(TokenPairs(pairs.tokens(group)), clip_interval).metrics
        ranks = int(pairs.rollout.rank[pairs.left[group[0]]]), int(pairs.training.rank[pairs.right[group[0]]])
        found.append(
            RankComparison(
                rollout_rank=ranks[0],
                train_rank=ranks[1],
                active_tokens=active,
                metrics=metrics,
                rollout=left[ranks[0]],
                training=right[ranks[1]],
            )
        )
    return tuple(found)


def metadata(info: RankInfo) -> dict[str, Json]:
    """What a rank says of itself, as JSON: rank, world size, dtype, parallel modes, padding side, cache mode, facts."""
    return {item.name: getattr(info, item.name) for item in attrs.fields(RankInfo)}


def replica_findings(ids: tuple[str, ...], side: str, rows: SideRows) -> list[Finding]:
    """A finding where ranks of one side that scored the same sequence differ in a bit of an active logprob."""
    copies = np.flatnonzero(np.arange(len(rows.sequence)) != rows.first[rows.sequence])
    if not len(copies):
        return []
    at, origin = rows.response_index(copies), rows.response_index(rows.first[rows.sequence[copies]])
    active = rows.samples.action_mask[at]
    mine, theirs = rows.samples.logprobs[at], rows.samples.logprobs[origin]
    unequal = np.flatnonzero(active & (mine.view(np.uint32) != theirs.view(np.uint32)))
    if not len(unequal):
        return []
    lengths = rows.response_length[copies]
    ends = np.cumsum(lengths)
    place = np.searchsorted(ends, unequal, side="right")
    row, first = int(copies[place[0]]), int(unequal[0])
    with np.errstate(invalid="ignore"):
        largest = float(np.max(np.abs(mine[unequal].astype(np.float64) - theirs[unequal])))
    evidence = {
        "side": side,
        "sequences_replicated": int((rows.replicas > 1).sum()),
        "sequences_disagreeing": len(np.unique(rows.sequence[copies[place]])),
        "tokens_compared": int(active.sum()),
        "tokens_unequal": len(unequal),
        "max_abs_difference": largest if math.isfinite(largest) else None,
        "first": {
            "sequence": ids[int(rows.sequence[row])],
            "position": first - int(ends[place[0]] - lengths[place[0]]),
            "ranks": [int(rows.rank[rows.first[rows.sequence[row]]]), int(rows.rank[row])],
            "logprobs": [_json(theirs[first]), _json(mine[first])],
        },
    }
    return [replicas_disagree(side, evidence)]


def replicas_disagree(side: str, evidence: Mapping[str, Json]) -> Finding:
    """The finding about ranks of one side that hold the same sequence with other bits."""
    return Finding(
        source_class=SourceClass.REDUCTION.value,
        subclass="replicas disagree",
        rule="replicas_bitwise_equal",
        evidence=evidence,
        advice=f"the {side} ranks hold replicas that are not bitwise equal; the worst replica judges",
    )


def _json(value: np.floating) -> float | str:
    return float(value) if np.isfinite(value) else str(value)
