"""Thousands of random lattices of up to eight knobs, monotone or not, against brute force."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from xcfg.analyzer.search.claim import Stopped
from xcfg.analyzer.search.problem import Word
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Role

SIDES = [(Role.ROLLOUT,), (Role.TRAINING,), (Role.ROLLOUT, Role.TRAINING)]


def random_knobs(knob, rng, count, *, values=1, ranked=True):
    """Knobs of random side, lifecycle and rank."""
    return [
        knob(
            f"k{at}",
            *rng.choice(SIDES),
            candidates=tuple(range(1, 1 + rng.randint(1, values))),
            lifecycle=rng.choice([Lifecycle.ENGINE, Lifecycle.ENGINE, Lifecycle.REQUEST]),
            suspicion=rng.random(),
            **(
                {
                    "semantic_scope": rng.choice([0, 0, 1]),
                    "cost": rng.choice([0.1, 0.2, 0.3]),
                    "intrusion": rng.randint(0, 1),
                    "maintenance": rng.randint(0, 1),
                }
                if ranked
                else {}
            ),
        )
        for at in range(count)
    ]


def table(rng, knobs, holes):
    """Every alignment passes, fails or cannot be built by lot; production fails, everything aligned passes."""
    chance, memory = rng.choice([0.1, 0.3, 0.6]), {}
    top = frozenset((item.name, item.candidates[0]) for item in knobs)
    memory[frozenset()], memory[top] = False, True

    def truth(aligned):
        if aligned not in memory:
            lot = random.Random(f"{seed} {sorted(aligned)}").random()
            memory[aligned] = None if lot < holes else lot < holes + chance * (1 - holes)
        return memory[aligned]

    seed = rng.random()
    return truth


def drift(rng, knobs, holes):
    """Signed contributions of every mismatch and of pairs of mismatches to a few tokens; the largest sum decides.

    Contributions of different sign cancel, so aligning a knob may make it worse. The aligned values of a knob may
    leave a rest. Pairs of values may be impossible together.
    """
    tokens = range(3)
    of = {(item.name, value): [0.0] * 3 for item in knobs for value in item.candidates}
    for item in knobs:
        guilty = rng.random() < 0.5
        of[item.name, None] = [rng.choice([-1, 1]) * rng.uniform(0.3, 2) * guilty for _ in tokens]
        for value in item.candidates[1:]:
            of[item.name, value] = [share * rng.choice([0, 0, 0.4]) for share in of[item.name, None]]
    pairs = {
        pair: [rng.choice([-1, 1]) * rng.uniform(0.3, 2) for _ in tokens]
        for pair in combinations([item.name for item in knobs], 2)
        if rng.random() < 0.15
    }
    values = [literal for literal in of if literal[1] is not None]
    impossible = [frozenset(rng.sample(values, 2)) for _ in range(holes)] if len(values) > 1 else []

    def truth(aligned):
        if any(pair <= aligned for pair in impossible):
            return None
        chosen = dict(aligned)
        total = [sum(of[item.name, chosen.get(item.name)][token] for item in knobs) for token in tokens]
        for (left, right), shares in pairs.items():
            if left not in chosen and right not in chosen:
                total = [one + other for one, other in zip(total, shares, strict=True)]
        return max(map(abs, total)) <= 0.5

    return truth


def worlds(world, knob, name, count, make, *, most, values=1, **kwargs):
    """Worlds in which production fails."""
    for at in range(count):
        rng = random.Random(f"{name} {at}")
        knobs = random_knobs(knob, rng, rng.randint(1, most), values=values)
        made = world(knobs, make(rng, knobs, **kwargs))
        if made.truth(frozenset()) is False:
            yield made


def finished(made, claim, prove=None):
    """Unless the reference fails the search ends with what it was to prove."""
    top = frozenset((item.name, item.candidates[0]) for item in made.knobs)
    if made.truth(top):
        assert claim.stopped is Stopped.PROVEN and claim.verified
        assert prove is None or claim.word is prove
    elif claim.word is None:
        assert claim.stopped in (Stopped.REFERENCE_FAILS, Stopped.NOTHING_PASSES)
        if claim.stopped is Stopped.NOTHING_PASSES:
            assert not any(made.truth(aligned) for aligned in made.keys)


TIERS = pytest.mark.parametrize("part", [1, pytest.param(15, marks=pytest.mark.full)])
"""How many times the lattices of the quick tier."""


@TIERS
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("prove", [Word.IRREDUCIBLE, Word.MINIMUM])
def test_outcomes_by_lot(world, knob, solve, holes, prove, part):
    for made in worlds(world, knob, f"lot {holes}", 70 * part, table, most=6, holes=holes):
        claim = solve(made, holds=False, prove=prove)
        finished(made, claim, None if prove is Word.IRREDUCIBLE else prove)


@TIERS
@pytest.mark.parametrize("holes", [0, 2])
@pytest.mark.parametrize(("prove", "most", "count"), [(Word.IRREDUCIBLE, 8, 50), (Word.MINIMUM, 7, 20)])
def test_interacting_and_cancelling_causes(world, knob, solve, holes, prove, most, count, part):
    for made in worlds(world, knob, f"drift {holes}", count * part, drift, most=most, holes=holes):
        finished(made, solve(made, holds=False, prove=prove), None if prove is Word.IRREDUCIBLE else prove)


@TIERS
@pytest.mark.parametrize("holes", [0, 4])
def test_several_aligned_values(world, knob, solve, holes, part):
    for made in worlds(world, knob, f"values {holes}", 40 * part, drift, most=5, values=3, holes=holes):
        finished(made, solve(made, holds=False))


@TIERS
def test_an_assumption_that_does_not_hold_is_stated_or_withdrawn(world, knob, solve, part):
    for made in worlds(world, knob, "assumed", 50 * part, drift, most=6, holes=0):
        claim = solve(made, holds=False, monotone=True, prove=Word.MINIMUM)
        finished(made, claim)
        assert not (claim.contradictions and claim.assumption)
