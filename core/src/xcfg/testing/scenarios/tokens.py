"""Logprobs that belong to other tokens or to other rows."""

from __future__ import annotations

import numpy as np

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.layout import Wants
from xcfg.testing.scenarios.scenario import scenario


def shifted(row: np.ndarray, logprob: np.ndarray, by: int, fill: str) -> np.ndarray:
    """(N,) place i holds the logprob of i + ``by`` of its row; beyond the row what ``fill`` says.

    ``flat``: whatever lies there, of the neighbouring row; ``zero``; ``edge``: the row's own last (first) value.
    """
    place = np.arange(len(logprob))
    start = np.searchsorted(row, row)
    end = np.searchsorted(row, row, side="right") - 1
    taken = place + by
    if fill == "flat":
        rolled: np.ndarray = logprob[taken % len(logprob)]
        return rolled
    inside = (taken >= start) & (taken <= end)
    moved = logprob[np.clip(taken, start, end)]
    return np.where(inside, moved, 0.0) if fill == "zero" else moved


def _shift(draft: Draft, fill: str) -> None:
    by = int(draft.pick(-3, -2, -1, -1, -1, 1, 1, 1, 2, 3))
    draft.facts["by"] = by
    draft.either().after.append(lambda logprob: shifted(draft.row, logprob, by, fill))


@scenario("shift-flat", "shift", cause=("T3",))
def shift_flat(draft: Draft) -> None:
    """Every token is wrong by a lot, and moving one side by a place mends it: labels rolled over the flat batch."""
    _shift(draft, "flat")


@scenario("shift-rows", "shift", cause=("T3",))
def shift_rows(draft: Draft) -> None:
    """The same within each row, whose end repeats: logits gathered at the label's own place."""
    _shift(draft, "edge")


@scenario("shift-padded", "shift", cause=("T3",), accept=("padded-zero",))
def shift_padded(draft: Draft) -> None:
    """The same, the free place at the row's end padded with 0.0. Some would name the padding first."""
    _shift(draft, "zero")


@scenario("shift-one-step", "shift", keep=("step",), wants=Wants(steps=3))
def shift_one_step(draft: Draft) -> None:
    """The collator of one step is off by one, the others are fine."""
    step = draft.column("step")[draft.row]
    hit = step == draft.generator.choice(np.unique(step))

    def moved(logprob: np.ndarray) -> np.ndarray:
        return np.where(hit, shifted(draft.row, logprob, 1, "edge"), logprob)

    draft.either().after.append(moved)


def paired(draft: Draft, source: np.ndarray) -> None:
    """One side's row r holds the logprobs of row ``source[r]``, padded with 0.0 where that one is shorter."""
    length = draft.rows.length
    start = np.cumsum(length) - length
    within = np.arange(len(draft.row)) - start[draft.row]
    other = source[draft.row]
    inside = within < length[other]
    taken = np.where(inside, start[other] + within, 0)
    draft.facts["source"] = source
    draft.either().after.append(lambda logprob: np.where(inside, logprob[taken], 0.0))


@scenario("pairing-all", "pairing", cause=("T1",), wants=Wants(equal=True))
def pairing_all(draft: Draft) -> None:
    """Drift of nats on every row although both lists hold the same numbers: one side was shuffled, the other not."""
    count = draft.shape.rows
    order = draft.generator.permutation(count)
    source = np.empty(count, np.int64)
    source[order] = np.roll(order, 1)
    paired(draft, source)


@scenario("pairing-unequal", "pairing", accept=("padded-zero",), wants=Wants(equal=False))
def pairing_unequal(draft: Draft) -> None:
    """The same with rows of unequal length in a padded matrix: short ones bring zeros, which some would name first."""
    paired(draft, np.roll(np.arange(draft.shape.rows), int(draft.pick(1, -1, 2))))


@scenario("pairing-swapped", "pairing", wants=Wants(equal=True))
def pairing_swapped(draft: Draft) -> None:
    """A few rows are fine but for pairs that came back from the server in the wrong order."""
    source = np.arange(draft.shape.rows)
    pairs = int(draft.generator.integers(2, max(3, draft.shape.rows // 4)))
    hit = draft.generator.permutation(draft.shape.rows)[: 2 * pairs].reshape(-1, 2)
    source[hit[:, 0]], source[hit[:, 1]] = hit[:, 1], hit[:, 0]
    paired(draft, source)


@scenario("pairing-prompts", "pairing", cause=("T1",), accept=("scoring-path", "unknown"))
def pairing_prompts(draft: Draft) -> None:
    """The right responses scored after the wrong prompts: no other row's logprobs fit, every token lost nats.

    What is recorded holds no row that fits, so that honest answers differ: wrong pairing, a wrong scoring path, or
    that nobody can tell.
    """
    states = draft.training.states
    wrong = states[draft.generator.permutation(len(states))]
    share = np.float32(draft.between(0.5, 0.95))
    draft.training.states = states * (1 - share) + wrong * share
