"""Weights that are not the same on both sides: for all tokens, from a place on, or more with every step."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.layout import Wants
from xcfg.testing.scenarios.magnitude import disturbance
from xcfg.testing.scenarios.scenario import scenario


def _own_places(draft: Draft) -> tuple[np.ndarray, np.ndarray]:
    """((R,) bool rows in flight, (N,) bool tokens from each row's own place on)."""
    count, length = draft.shape.rows, draft.rows.length
    share = draft.generator.uniform(0.3, 0.8, count)
    hit = (draft.generator.random(count) < draft.pick(0.35, 0.6, 0.9)) & (length >= 8)
    hit |= length == length.max()
    within = np.arange(len(draft.row)) - np.searchsorted(draft.row, draft.row)
    return hit, within >= np.rint(share * length)[draft.row]


@scenario("stale-tail-straddle", "stale-tail", cause=("W3",))
def straddle(draft: Draft) -> None:
    """In some rows everything from a place on drifts, another place in each: the weights changed meanwhile."""
    hit, tail = _own_places(draft)
    draft.disturb(draft.rollout, tail & hit[draft.row], 1.5 * disturbance(draft))


@scenario("stale-tail-cache", "stale-tail")
def tail_cache(draft: Draft) -> None:
    """The same, growing after the place: rows resumed after a preemption with a cache that was half recomputed."""
    hit, tail = _own_places(draft)
    since = np.cumsum(tail) - np.cumsum(tail)[np.searchsorted(draft.row, draft.row)]
    draft.disturb(draft.rollout, tail * hit[draft.row] * np.minimum(1, 0.4 + since / 40), 2 * disturbance(draft))


@scenario("stale-tail-template", "stale-tail", cause=("T5",), wants=Wants(turns=True))
def tail_template(draft: Draft) -> None:
    """From the second turn on every conversation drifts: the chat template dropped earlier reasoning."""
    within = np.arange(len(draft.row)) - np.searchsorted(draft.row, draft.row)
    draft.disturb(draft.training, draft.position > within, 2 * disturbance(draft))


@scenario("stale-weights-noise", "stale-weights", keep=("dtype",), cause=("W2",))
def stale_all(draft: Draft) -> None:
    """Every token drifts somewhat, in both directions, by no pattern: one side has not got the last update."""
    draft.disturb(draft.rollout, np.ones(len(draft.row)), 1.5 * disturbance(draft))


@scenario("stale-weights-head", "stale-weights", keep=("dtype",), cause=("W2",))
def stale_head(draft: Draft) -> None:
    """The same, and only the head is old: a tied embedding that was not tied again after the reload."""
    head = draft.rollout.weights.head
    noise = draft.generator.standard_normal(head.shape, dtype=np.float32) / np.float32(head.shape[0] ** 0.5)
    size = np.float32(min(0.2, 1.5 * disturbance(draft)))
    draft.rollout.weights = evolve(draft.rollout.weights, head=head + size * noise)


@scenario("stale-weights-adapter", "stale-weights", keep=("dtype",), cause=("W4",))
def stale_adapter(draft: Draft) -> None:
    """The same: a low-rank adapter was merged on one side and has no effect on the other."""
    down = draft.rollout.weights.down
    pair = [draft.generator.standard_normal((size, 4), dtype=np.float32) for size in down.shape]
    delta = pair[0] @ pair[1].T
    delta *= np.linalg.norm(down) / np.linalg.norm(delta) * np.float32(0.3 * disturbance(draft))
    half = draft.either()
    half.weights = evolve(half.weights, down=down + delta)


@scenario("stale-weights-missing", "stale-weights", keep=("dtype",), cause=("W1",), accept=("scoring-path",))
def missing_tensors(draft: Draft) -> None:
    """Catastrophic from the first synchronisation on: a block's tensors were never loaded.

    At nats on every token some would say instead that this side's scoring path is wrong.
    """
    half = draft.either()
    half.weights = evolve(half.weights, down=np.zeros_like(half.weights.down))


def _growing(draft: Draft, growth: np.ndarray, floors: float) -> None:
    """Disturb one side by ``growth`` (R,), which is 1 in the worst row."""
    draft.facts["growth"] = growth
    draft.disturb(draft.rollout, growth[draft.row], floors * disturbance(draft))


@scenario("steps-growth-linear", "steps-growth", cause=("T1",), keep=("step",), wants=Wants(steps=6))
def growing(draft: Draft) -> None:
    """Fine at first, then worse with every step although the learning rate is 0: an update that is added again."""
    step = draft.column("step") - draft.column("step")[0]
    _growing(draft, step / step.max(), 2)


@scenario("steps-growth-restart", "steps-growth", keep=("step",), wants=Wants(steps=8))
def growing_again(draft: Draft) -> None:
    """The same, and a restart of the run mends it for a while."""
    step = draft.column("step") - draft.column("step")[0]
    restart = int(draft.pick(3, 4, 5))
    since = np.where(step < restart, step, step - restart)
    _growing(draft, since / since.max(), 2)


@scenario("steps-growth-doubling", "steps-growth", keep=("step",), wants=Wants(steps=6))
def doubling(draft: Draft) -> None:
    """The same, doubling with every step: the error is fed back."""
    step = draft.column("step") - draft.column("step")[0]
    _growing(draft, 2.0 ** (step - step.max()), 4)
