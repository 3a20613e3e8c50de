"""Every monotone instance of up to five knobs, against brute force."""

from __future__ import annotations

import random

import pytest

from xcfg.analyzer.search.claim import Stopped
from xcfg.analyzer.search.problem import Word
from xcfg.model.scorer import Role

MODES = [
    {},
    {"monotone": True},
    {"prove": Word.MINIMUM},
    {"monotone": True, "prove": Word.MINIMUM},
]


def monotone_tables(knobs):
    """Truth tables, bit i for the set i of aligned knobs, in which aligning more never stops a pass."""
    if knobs == 0:
        return [0, 1]
    lower = monotone_tables(knobs - 1)
    return [low | high << (1 << knobs - 1) for low in lower for high in lower if low & ~high == 0]


def searched(knobs):
    """The tables in which production fails and everything aligned passes."""
    return [table for table in monotone_tables(knobs) if not table & 1 and table >> (1 << knobs) - 1]


def test_the_tables_are_all_there():
    """Dedekind's numbers (OEIS A000372): 3, 6, 20, 168, 7581."""
    assert [len(monotone_tables(knobs)) for knobs in range(1, 6)] == [3, 6, 20, 168, 7581]


def build(world, knob, table, sides):
    names = [f"k{at}" for at in range(len(sides))]
    truth = lambda aligned: bool(table >> sum(1 << names.index(name) for name, _ in aligned) & 1)  # noqa: E731
    return world([knob(name, *side) for name, side in zip(names, sides, strict=True)], truth)


def sides_of(knobs, seed):
    one, other = (Role.ROLLOUT,), (Role.TRAINING,)
    return [random.Random(f"{seed} {at}").choice([one, other, (*one, *other)]) for at in range(knobs)]


def verify(claim, options):
    assert claim.stopped is Stopped.PROVEN and claim.verified
    assert not claim.contradictions
    if options.get("prove"):
        assert claim.word is Word.MINIMUM


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("knobs", [1, 2, 3, 4])
def test_up_to_four_knobs(world, knob, solve, knobs, options):
    for table in searched(knobs):
        for sides in ([(Role.ROLLOUT,)] * knobs, sides_of(knobs, table)):
            verify(solve(build(world, knob, table, sides), **options), options)


@pytest.mark.parametrize("options", MODES, ids=str)
def test_a_sample_of_five_knobs(world, knob, solve, options):
    for table in searched(5)[16 * MODES.index(options) :: 64]:
        verify(solve(build(world, knob, table, sides_of(5, table)), **options), options)


@pytest.mark.full
@pytest.mark.parametrize("options", MODES, ids=str)
def test_all_of_five_knobs(world, knob, solve, options):
    for table in searched(5):
        verify(solve(build(world, knob, table, sides_of(5, table)), **options), options)
