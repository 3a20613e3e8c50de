"""Only some ranks, only some rows."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.language import logits_of
from xcfg.testing.scenarios.layout import Wants
from xcfg.testing.scenarios.magnitude import disturbance, nats
from xcfg.testing.scenarios.scenario import scenario
from xcfg.testing.scenarios.tempered import tempered

SEVERAL = Wants(ranks=4)


def _some_ranks(draft: Draft, column: str, most: int) -> np.ndarray:
    """(R,) bool: rows of one rank or of a few, never of all."""
    rank = draft.column(column)
    known = np.unique(rank)
    count = int(draft.generator.integers(1, max(2, min(most, len(known) - 1) + 1)))
    hit = np.isin(rank, draft.generator.permutation(known)[:count])
    draft.facts["hit"] = hit
    return hit


@scenario("rank-training", "rank", keep=("train_rank",), wants=SEVERAL, cause=("R2",))
def rank_training(draft: Draft) -> None:
    """All rows that one or two trainer ranks scored drift: their shard is of another version."""
    draft.disturb(draft.training, _some_ranks(draft, "train_rank", 2)[draft.row], 1.5 * disturbance(draft))


@scenario("rank-adapter", "rank", keep=("rollout_rank",), wants=Wants(ranks=8), cause=("W4",))
def rank_adapter(draft: Draft) -> None:
    """All rows of some engine replicas drift: the adapter is off there."""
    rank = draft.column("rollout_rank")
    hit = rank == draft.generator.choice(rank)
    draft.facts["hit"] = hit
    if hit.all():
        draft.layout = evolve(draft.layout, rows=evolve(draft.rows, rollout_rank=np.arange(len(hit)) % 4))
        hit = np.arange(len(hit)) % 4 == 1
    draft.disturb(draft.rollout, hit[draft.row], 1.5 * disturbance(draft))


@scenario("rank-offset", "rank", keep=("train_rank",), wants=SEVERAL, accept=("constant-offset",))
def rank_offset(draft: Draft) -> None:
    """One rank's tokens are all off by one number: a normaliser that was not reduced there. Both are true."""
    hit, amount = _some_ranks(draft, "train_rank", 1)[draft.row], -nats(draft, 8, 1.0)
    draft.training.after.append(lambda logprob: np.where(hit, logprob + amount, logprob))


@scenario("rank-temperature", "rank", keep=("rollout_rank",), wants=Wants(ranks=8), accept=("temperature", "sequences"))
def rank_temperature(draft: Draft) -> None:
    """One replica was started with another temperature: some ranks, and a temperature explains them."""
    hit = _some_ranks(draft, "rollout_rank", 2)
    tempered(draft, draft.rollout, hit[draft.row])


@scenario("rank-unrecorded", "sequences", wants=SEVERAL, accept=("rank", "unknown"), cause=("R2",))
def rank_unrecorded(draft: Draft) -> None:
    """As on some ranks, kept or not: without the ranks it is some rows, all of each."""
    draft.disturb(draft.training, _some_ranks(draft, "train_rank", 2)[draft.row], 2 * disturbance(draft))


@scenario("sequences-some", "sequences", cause=("R2",))
def some(draft: Draft) -> None:
    """A few rows drift, all their tokens; nothing else sets them apart: requests served during a reload."""
    count = draft.shape.rows
    hit = draft.generator.permutation(count)[: max(1, int(count * draft.pick(0.1, 0.2, 0.4)))]
    draft.facts["hit"] = hit
    draft.disturb(draft.either(), np.isin(draft.row, hit), 2 * disturbance(draft))


@scenario("sequences-last", "sequences", keep=("batch",), cause=("R2",), accept=("packed-positions",))
def last_of_batch(draft: Draft) -> None:
    """The last row of every micro-batch drifts: a tail that another kernel handles.

    With packed rows of batches of two, it is also every row that is not the first.
    """
    batch = draft.column("batch")
    hit = np.diff(batch, append=-1) != 0
    draft.facts["hit"] = np.flatnonzero(hit)
    draft.disturb(draft.either(), hit[draft.row], 1.5 * disturbance(draft))


@scenario("sequences-exact", "sequences", accept=("floor",), cause=("A4", "R1"))
def exact_but_some(draft: Draft) -> None:
    """Most rows are equal to the last bit and some show ordinary noise: batch-invariant kernels but for those.

    The noise is inside the floor, so that calling it clean is right as well.
    """
    draft.training.how = evolve(draft.rollout.how)
    noisy = evolve(draft.training, how=evolve(draft.rollout.how, shards=3 - min(2, draft.rollout.how.shards)))
    hit = draft.generator.random(draft.shape.rows) < 0.3
    hit[0] = True
    places = np.flatnonzero(hit[draft.row])

    def mixed(logits: np.ndarray) -> np.ndarray:
        result = logits.copy()
        result[places] = logits_of(noisy.weights, noisy.states[places], noisy.how)
        return result

    draft.training.transforms.append(mixed)
