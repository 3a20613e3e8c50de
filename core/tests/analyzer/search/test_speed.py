"""Executions on lattices with one to three causes, against what information theory and textbooks ask for."""

from __future__ import annotations

import random
import statistics
from math import comb, log2

import pytest

from xcfg.analyzer.search.outcome import Observed, Outcome
from xcfg.analyzer.search.problem import Options, Problem, Word
from xcfg.analyzer.search.session import search
from xcfg.model.status import Status

pytestmark = pytest.mark.full

INSTANCES = 41


def median_executions(knob, knobs, causes, options):
    """Over seeded instances, all knobs on one side; production is known to fail."""
    counts = []
    for seed in range(INSTANCES):
        needed = {f"k{at}" for at in random.Random(f"speed {knobs} {causes} {seed}").sample(range(knobs), causes)}
        problem = Problem(knobs=[knob(f"k{at}") for at in range(knobs)])
        production = Observed(aligned={}, outcome=Outcome(status=Status.FAIL))

        def execute(trial, needed=needed):
            return Outcome(status=Status.PASS if needed <= trial.aligned.keys() else Status.FAIL)

        claim = search(problem, execute, options, outcomes=[production])
        assert set(claim.aligned) == needed and claim.verified
        assert claim.executions.run == claim.executions.constructions
        counts.append(claim.executions.run)
    return statistics.median(counts)


@pytest.mark.parametrize("causes", [1, 2, 3])
@pytest.mark.parametrize("knobs", [20, 40])
def test_within_one_and_a_half_of_what_information_takes(knob, knobs, causes):
    """1.5 log2 C(n, d) to find d causes among n, and d + 1 runs to prove them."""
    bound = 1.5 * log2(comb(knobs, causes)) + causes + 1
    assert median_executions(knob, knobs, causes, Options(monotone=True)) <= bound
    assert median_executions(knob, knobs, causes, Options()) <= bound


def test_two_causes_of_twenty_knobs_take_less_than_bisection(knob):
    """Medians of others on such lattices: prefix bisection 13, linear elimination 23, ddmin 26."""
    assert median_executions(knob, 20, 2, Options()) < 13


def minimum_of(knob, knobs, truth):
    """The claim where monotonicity is stated and the minimum is to be proven."""
    problem = Problem(knobs=[knob(f"k{at}") for at in range(knobs)])

    def execute(trial):
        aligned = {int(name[1:]) for name in trial.aligned}
        return Outcome(status=Status.PASS if truth(aligned) else Status.FAIL)

    return search(problem, execute, Options(monotone=True, prove=Word.MINIMUM))


def test_a_minimum_among_alternatives_takes_less_than_every_smaller_set(knob):
    """Three causes, each mended by either of two of 40 knobs: eight answers, 820 smaller sets."""
    executions = []
    for seed in range(7):
        drawn = random.Random(seed).sample(range(40), 6)
        pairs = [set(drawn[at : at + 2]) for at in (0, 2, 4)]
        claim = minimum_of(knob, 40, lambda aligned, pairs=pairs: all(pair & aligned for pair in pairs))
        assert claim.word is Word.MINIMUM and len(claim.aligned) == 3
        assert claim.untried.smaller == 820
        executions.append(claim.executions.run)
    assert statistics.median(executions) <= 70


def test_where_any_three_do_every_pair_is_executed_and_little_else(knob):
    """220 answers; no set larger than a pair fails, so that each of the 66 pairs has to be executed."""
    claim = minimum_of(knob, 12, lambda aligned: len(aligned) >= 3)
    assert claim.word is Word.MINIMUM and len(claim.aligned) == 3
    pairs = {tuple(entry.aligned) for entry in claim.proof if len(entry.aligned) == 2}
    assert len(pairs) == 66
    assert claim.executions.run <= 2 * 66
