"""Verdicts near the threshold are repeated before they are trusted."""

from __future__ import annotations

import random

import pytest

from xcfg.analyzer.search.claim import Stopped
from xcfg.analyzer.search.outcome import Outcome, Verdict, trusted
from xcfg.analyzer.search.problem import Options, Word
from xcfg.analyzer.search.session import Search, search
from xcfg.model.status import Status

MARGIN, REPEATS = 0.1, 2


def judged(number, threshold=2.0):
    """An outcome by its number; equality passes."""
    within = number <= threshold
    return Outcome(
        status=Status.PASS if within else Status.FAIL, within=within, max_abs_dlogp=number, threshold=threshold
    )


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ([], None),
        ([1.0], Verdict.PASS),
        ([3.0], Verdict.FAIL),
        ([1.79], Verdict.PASS),
        ([1.81], None),
        ([2.19], None),
        ([2.21], Verdict.FAIL),
        ([1.9, 1.9], None),
        ([1.9, 1.9, 1.9], Verdict.PASS),
        ([2.1, 2.1, 2.1], Verdict.FAIL),
        ([1.9, 1.0, 1.0], Verdict.PASS),
        ([1.9, 2.1], Verdict.UNSETTLED),
        ([1.9, 1.9, 5.0], Verdict.UNSETTLED),
        ([1.0, 5.0], Verdict.UNSETTLED),
    ],
)
def test_when_a_verdict_is_trusted(numbers, verdict):
    """Threshold 2, margin 0.1: near is nearer than 0.2; then three executions have to agree."""
    assert trusted([judged(number) for number in numbers], MARGIN, REPEATS) is verdict


@pytest.mark.parametrize(("breaks", "verdict"), [(0, None), (1, None), (2, Verdict.UNKNOWN), (3, Verdict.UNKNOWN)])
def test_repeats_that_break_leave_a_case_unknown(breaks, verdict):
    """One near the threshold and ``breaks`` broken ones, of three that have to agree; no engine more is spent."""
    broken = [Outcome(status=Status.LAUNCH_ERROR)] * breaks
    assert trusted([judged(1.9), *broken], MARGIN, REPEATS) is verdict


def test_a_search_whose_repeats_always_break_ends(world, knob):
    class Broken(world):
        def outcome(self, trial):
            if trial.repeat:
                return Outcome(status=Status.TIMEOUT)
            return judged(1.0 if {"a", "b"} <= trial.aligned.keys() else 1.9 if "a" in trial.aligned else 5.0)

    made = Broken([knob("a"), knob("b")], bool)
    claim = search(made.problem, made.execute, Options(margin=MARGIN, repeats=REPEATS))
    assert claim.stopped is Stopped.UNJUDGED_PARTS and claim.word is Word.SUFFICIENT
    assert claim.unjudged == ({"a": "on"},)
    assert [len(runs) for aligned, runs in made.executed.items() if dict(aligned).keys() == {"a"}] == [3]


def test_nothing_is_repeated_without_a_margin_or_repeats():
    assert trusted([judged(2.0)], 0.0, REPEATS) is Verdict.PASS
    assert trusted([judged(2.0)], MARGIN, 0) is Verdict.PASS


def numeric(world, values, noise):
    """A world of numbers by set of names, each execution off by what ``noise`` draws."""

    class Numeric(world):
        def outcome(self, trial):
            return judged(values(trial.aligned.keys()) + noise())

    return lambda knobs: Numeric(knobs, lambda aligned: values(dict(aligned).keys()) <= 2.0)


def test_repeats_are_asked_for_and_counted(world, knob):
    values = lambda names: 1.9 if "a" in names else 5.0  # noqa: E731
    made = numeric(world, values, lambda: 0.0)([knob("a"), knob("b"), knob("c")])
    session, repeats = Search(made.problem, Options(margin=MARGIN, repeats=REPEATS)), 0
    while trials := session.ask():
        for trial in trials:
            repeats += trial.repeat
            assert not trial.repeat or (trial.constructions == 2 and not trial.free)
            session.tell(trial, made.execute(trial))
    claim = session.claim()
    assert set(claim.aligned) == {"a"} and claim.word is Word.MINIMUM
    assert {len(runs) for aligned, runs in made.executed.items() if "a" in dict(aligned)} == {3}
    assert {len(runs) for aligned, runs in made.executed.items() if "a" not in dict(aligned)} == {1}
    assert repeats == 2 * sum("a" in dict(aligned) for aligned in made.executed)
    assert claim.executions.constructions == made.constructions
    assert len([entry for entry in claim.proof if entry.aligned.keys() == {"a"}]) == 3


def test_a_set_that_does_not_pass_reliably_is_no_answer(world, knob):
    numbers = iter([1.95, 2.05])

    class Unsettled(world):
        def outcome(self, trial):
            names = trial.aligned.keys()
            return judged(next(numbers) if names == {"a"} else 1.0 if {"a", "b"} <= names else 5.0)

    made = Unsettled([knob("a"), knob("b"), knob("c")], bool)
    claim = search(made.problem, made.execute, Options(margin=MARGIN, repeats=REPEATS))
    assert set(claim.aligned) == {"a", "b"} and claim.word is Word.IRREDUCIBLE
    assert [set(aligned) for aligned in claim.unsettled] == [{"a"}]


def test_a_reference_that_does_not_pass_reliably_stops_the_search(world, knob):
    numbers = iter([5.0, 1.95, 2.05])

    class Unsettled(world):
        def outcome(self, trial):
            return judged(next(numbers))

    made = Unsettled([knob("a"), knob("b")], bool)
    claim = search(made.problem, made.execute, Options(margin=MARGIN, repeats=REPEATS))
    assert claim.stopped is Stopped.REFERENCE_FAILS and claim.word is None


def drawn(seed):
    """Six knobs that add positive drift, numbers on a grid that often lies near the threshold of 2."""
    rng = random.Random(seed)
    shares = {f"k{at}": rng.choice([0.0, 0.0, 0.5, 1.0, 1.05, 1.5]) for at in range(6)}
    return lambda names: 0.5 + sum(share for name, share in shares.items() if name not in names)


def wrong(world, knob, options, seeds):
    """How many claims of noisy searches the noise-free truth refutes, leaving what lies within the noise aside."""
    refuted = executed = 0
    for seed in range(seeds):
        values, rng = drawn(seed), random.Random(f"noise {seed}")
        made = numeric(world, values, lambda rng=rng: rng.uniform(-0.06, 0.06))([knob(f"k{at}") for at in range(6)])
        claim = search(made.problem, made.execute, options)
        executed += sum(map(len, made.executed.values()))
        if claim.aligned is not None and claim.verified:
            answer = frozenset(claim.aligned.items())
            refuted += values(claim.aligned.keys()) > 2.0
            refuted += any(values(dict(other).keys()) < 1.94 for other in made.parts(answer))
    return refuted, executed


def test_repeats_keep_noise_out_of_claims(world, knob):
    """Noise of 3% of the threshold: repeats bring the refuted claims down to what three equal draws leave."""
    trusting, once = wrong(world, knob, Options(margin=0.0), 200)
    careful, thrice = wrong(world, knob, Options(margin=0.07, repeats=3), 200)
    assert trusting >= 10 and careful <= trusting / 4
    assert once < thrice < 2.5 * once


def test_a_margin_beyond_the_noise_costs_nothing_far_from_the_threshold(world, knob):
    values = lambda names: 0.2 if {"k1", "k4"} <= names else 4.0  # noqa: E731
    made = numeric(world, values, lambda: random.Random(0).uniform(-0.06, 0.06))([knob(f"k{at}") for at in range(6)])
    claim = search(made.problem, made.execute, Options(margin=0.07, repeats=5))
    assert set(claim.aligned) == {"k1", "k4"} and claim.verified
    assert all(len(runs) == 1 for runs in made.executed.values())
