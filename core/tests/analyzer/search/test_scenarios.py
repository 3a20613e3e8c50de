"""Kinds of causes one by one, with what the claim has to say of each."""

from __future__ import annotations

import pytest

from xcfg.analyzer.ladder import Level
from xcfg.analyzer.search.claim import MONOTONE, Stopped
from xcfg.analyzer.search.outcome import Outcome
from xcfg.analyzer.search.problem import Options, Problem, Word
from xcfg.analyzer.search.session import Search, search
from xcfg.model.scorer import Role
from xcfg.model.status import Status

ROLLOUT, TRAINING = Role.ROLLOUT, Role.TRAINING
LIMIT = 0.06


def measured(world, numbers, default):
    """A world of figures by set of aligned knobs, judged against 0.06."""

    class Measured(world):
        def outcome(self, trial):
            number = numbers.get(frozenset(trial.aligned), default)
            status = Status.PASS if number <= LIMIT else Status.FAIL
            return Outcome(status=status, within=number <= LIMIT, max_abs_dlogp=number, threshold=LIMIT)

    return lambda knobs: Measured(knobs, lambda aligned: numbers.get(frozenset(dict(aligned)), default) <= LIMIT)


def by_names(*lines):
    return {frozenset(names.split()): number for names, number in lines}


def test_an_interacting_pair(world, knob, solve):
    """Both dtypes have to be float32; either alone hardly helps (bfloat16 engines against a trained toy)."""
    numbers = by_names(("", 0.127), ("rollout", 0.101), ("training", 0.109), ("rollout training", 7.4e-6))
    claim = solve(measured(world, numbers, 1.0)([knob("rollout", ROLLOUT), knob("training", TRAINING)]))
    assert set(claim.aligned) == {"rollout", "training"}
    assert claim.word is Word.MINIMUM and claim.rung.level is Level.L5 and claim.rung.satisfied
    assert claim.executions.constructions == 4


def test_a_pair_that_cancels(world, knob, solve):
    """Top-p alone makes it worse, temperature alone is not enough, both agree; a third knob has no part in it."""
    numbers = by_names(("", 1.07), ("top_p", 3.75), ("temperature", 0.105), ("top_p temperature", 9.5e-6))
    numbers |= {names | {"cache"}: number for names, number in numbers.items()}
    claim = solve(measured(world, numbers, 1.0)([knob("top_p"), knob("temperature"), knob("cache")]), holds=False)
    assert set(claim.aligned) == {"top_p", "temperature"} and claim.still_different == ("cache",)
    assert claim.word is Word.IRREDUCIBLE and claim.rung.level is Level.L4
    assert claim.untried.first == {"cache": "on"}
    assert (claim.untried.smaller, claim.untried.executed) == (3, 2)


def test_mismatches_that_cancel_each_other_are_left_alone(world, knob, solve):
    """Aligning one of the two makes it worse, so that both look needed; the one true cause is found all the same."""
    truth = lambda aligned: "cause" in dict(aligned) and len({"left", "right"} & dict(aligned).keys()) != 1  # noqa: E731
    claim = solve(world([knob(name) for name in ("left", "right", "cause", "other")], truth), holds=False)
    assert set(claim.aligned) == {"cause"} and claim.word is Word.MINIMUM
    assert claim.rung.level is Level.L3


@pytest.mark.parametrize("first", ["a", "b"])
def test_redundant_mismatches_need_one_alignment(world, knob, solve, first):
    """Either mismatch alone passes, both together fail: aligning either suffices, the less suspected is left alone."""
    knobs = [knob(name, suspicion=float(name == first)) for name in ("a", "b", "c", "d")]
    claim = solve(world(knobs, lambda aligned: bool({"a", "b"} & dict(aligned).keys())))
    assert set(claim.aligned) == {first} and claim.word is Word.MINIMUM


def test_four_causes_of_which_none_may_be_left_out(world, knob, solve):
    names = ("weights", "kv_cache", "rollout_dtype", "training_dtype")
    knobs = [knob(name, TRAINING if name == "training_dtype" else ROLLOUT) for name in (*names, "tp", "compile")]
    claim = solve(world(knobs, lambda aligned: set(names) <= dict(aligned).keys()))
    assert set(claim.aligned) == set(names) and claim.word is Word.IRREDUCIBLE
    parts = [entry for entry in claim.proof if entry.aligned and entry.aligned.keys() < set(names)]
    assert len(parts) == 2**4 - 2
    assert claim.assumption == ""


def test_the_assumption_replaces_small_parts_and_says_so(world, knob, solve):
    names = {"k1", "k4", "k7"}
    made = world([knob(f"k{at}") for at in range(9)], lambda aligned: names <= dict(aligned).keys())
    claim = solve(made, monotone=True, prove=Word.MINIMUM)
    assert set(claim.aligned) == names and claim.word is Word.MINIMUM
    assert claim.assumption == MONOTONE
    assert claim.executions.run < (9 + 36) / 2, "the smaller sets alone are 45"


def test_a_contradiction_withdraws_the_assumption(knob, observe):
    """{a} passes, {a, b} fails: that the failing {b, c, d} excludes its parts is no longer taken for granted."""
    problem = Problem(knobs=[knob(name) for name in "abcd"])
    known = [("", False), ("abcd", True), ("bcd", False), ("a", True)]
    outcomes = [observe(dict.fromkeys(names, "on"), Status.PASS if within else Status.FAIL) for names, within in known]
    costly = Problem(knobs=[knob("a", cost=1.0), *problem.knobs[1:]])
    options = Options(monotone=True, prove=Word.MINIMUM)
    claim = Search(costly, options, outcomes=outcomes).claim()
    assert claim.word is Word.MINIMUM and claim.assumption == MONOTONE and not claim.contradictions
    claim = Search(costly, options, outcomes=[*outcomes, observe({"a": "on", "b": "on"})]).claim()
    assert claim.contradictions == (({"a": "on"}, {"a": "on", "b": "on"}),)
    assert claim.word is Word.IRREDUCIBLE and claim.assumption == "" and claim.stopped is Stopped.UNFINISHED


def test_everything_aligned_fails(world, knob):
    made = world([knob("a"), knob("b")], lambda aligned: dict(aligned).keys() == {"a"})
    claim = search(made.problem, made.execute)
    assert claim.stopped is Stopped.REFERENCE_FAILS and claim.aligned is None and claim.word is None
    assert (claim.rung.level, claim.rung.satisfied) == (Level.L5, False)
    assert "base scoring path" in claim.reason
    assert len(made.executed) == 2


def test_production_passes(world, knob):
    made = world([knob("a")], lambda aligned: True)
    claim = search(made.problem, made.execute)
    assert claim.stopped is Stopped.PRODUCTION_PASSES and claim.aligned == {} and claim.word is Word.MINIMUM
    assert (claim.rung.level, claim.rung.satisfied) == (Level.L1, True)
    assert len(made.executed) == 1


@pytest.mark.parametrize("broken", [0, 2])
def test_production_or_reference_without_a_verdict(world, knob, broken):
    def execute(trial):
        status = Status.LAUNCH_ERROR if len(trial.aligned) == broken else Status.FAIL
        return Outcome(status=status)

    claim = search(world([knob("a"), knob("b")], bool).problem, execute)
    assert claim.stopped is Stopped.NO_VERDICT and claim.word is None
    assert [len(aligned) for aligned in claim.unjudged] == [broken]


def test_a_second_aligned_value_makes_the_reference(world, knob, solve):
    """Everything at its first candidate fails; with the dtype at its second candidate it passes."""
    truth = lambda aligned: dict(aligned).get("dtype") == "float32"  # noqa: E731
    made = world([knob("dtype", candidates=("bfloat16", "float32")), knob("cache")], truth)
    claim = solve(made, holds=False)
    assert claim.aligned == {"dtype": "float32"}
    assert claim.word is Word.MINIMUM and claim.rung.level is Level.L3


def test_the_better_liked_value_wins(world, knob, solve):
    truth = lambda aligned: "backend" in dict(aligned)  # noqa: E731
    claim = solve(world([knob("backend", candidates=("liked", "other")), knob("cache")], truth))
    assert claim.aligned == {"backend": "liked"}


@pytest.mark.parametrize("cannot", ["a", "b", "e"])
def test_a_reference_that_cannot_be_built(world, knob, solve, cannot):
    """The search goes on from everything but the knob in the way."""

    def truth(aligned):
        names = dict(aligned).keys()
        return None if cannot in names else {"c", "d"} <= names

    claim = solve(world([knob(name) for name in "abcde"], truth))
    assert set(claim.aligned) == {"c", "d"} and claim.verified
    assert claim.unsupported


def test_a_reference_that_fails_at_the_values_that_can_be_built(world, knob):
    """The first candidates cannot be built, the second ones fail: the reference has failed."""
    truth = lambda aligned: None if "first" in dict(aligned).values() else dict(aligned).keys() == {"a"}  # noqa: E731
    made = world([knob(name, candidates=("first", "second")) for name in "ab"], truth)
    claim = search(made.problem, made.execute)
    assert claim.stopped is Stopped.REFERENCE_FAILS and claim.rung.level is Level.L5
    assert len(made.executed) == 3


def test_two_knobs_that_cannot_be_built_are_left_out_together(world, knob):
    def truth(aligned):
        names = dict(aligned).keys()
        return None if names & {"k3", "k11"} else {"k5", "k8"} <= names

    made = world([knob(f"k{at}") for at in range(16)], truth)
    claim = search(made.problem, made.execute)
    assert set(claim.aligned) == {"k5", "k8"} and claim.verified
    assert len(made.executed) < 60


def test_holes_on_the_way_down_do_not_stop_it(world, knob, solve):
    """Any set of odd size beyond two cannot be built."""

    def truth(aligned):
        return None if len(aligned) % 2 and len(aligned) > 2 else {"k1", "k6"} <= dict(aligned).keys()

    claim = solve(world([knob(f"k{at}") for at in range(8)], truth))
    assert set(claim.aligned) == {"k1", "k6"} and claim.word in (Word.IRREDUCIBLE, Word.MINIMUM)


def test_a_knob_that_nothing_can_be_built_without(world, knob):
    """Pools at the front of the order hold it and cannot be built; others are tried before every part is."""

    def truth(aligned):
        names = dict(aligned).keys()
        return None if names and "anchor" not in names else {"k4", "k7", "k9"} <= names

    made = world([knob("anchor"), *(knob(f"k{at}") for at in range(19))], truth)
    claim = search(made.problem, made.execute)
    assert set(claim.aligned) == {"anchor", "k4", "k7", "k9"} and claim.verified
    assert len(made.executed) < 100


def test_a_part_that_breaks_leaves_the_claim_open(world, knob, observe):
    needed = {"a", "b"}

    def execute(trial):
        names = trial.aligned.keys()
        if names == {"a"}:
            return Outcome(status=Status.TIMEOUT)
        return Outcome(status=Status.PASS if needed <= names else Status.FAIL)

    problem = world([knob(name) for name in "abc"], bool).problem
    session = Search(problem)
    while trials := session.ask():
        for trial in trials:
            session.tell(trial, execute(trial))
    claim = session.claim()
    assert set(claim.aligned) == needed and claim.word is Word.SUFFICIENT and not claim.verified
    assert claim.stopped is Stopped.UNJUDGED_PARTS and claim.unjudged == ({"a": "on"},)
    kept = [entry for entry in session.observed if entry.outcome.status is not Status.TIMEOUT]
    again = Search(problem, outcomes=kept)
    (trial,) = again.ask()
    assert trial.aligned == {"a": "on"}
    again.tell(trial, Outcome(status=Status.FAIL))
    assert again.claim().word is Word.IRREDUCIBLE


def test_a_smaller_set_that_breaks_prevents_minimum_only(world, knob):
    def execute(trial):
        names = trial.aligned.keys()
        if names == {"c"}:
            return Outcome(status=Status.SCORER_ERROR)
        return Outcome(status=Status.PASS if {"a", "b"} <= names else Status.FAIL)

    problem = world([knob(name) for name in "abc"], bool).problem
    claim = search(problem, execute, Options(prove=Word.MINIMUM))
    assert claim.word is Word.IRREDUCIBLE and claim.stopped is Stopped.UNJUDGED_PARTS
    assert claim.untried.first == {"c": "on"}


def test_a_wide_knob_is_no_minimum_while_narrow_ones_are_untried(world, knob, solve):
    """One wide knob alone passes, and so do two narrow ones: those are the smaller set."""
    truth = lambda aligned: "wide" in dict(aligned) or {"n1", "n2"} <= dict(aligned).keys()  # noqa: E731
    knobs = [knob("wide", semantic_scope=2), *(knob(f"n{at}") for at in range(4))]
    claim = solve(world(knobs, truth), prove=Word.MINIMUM)
    assert set(claim.aligned) == {"n1", "n2"} and claim.word is Word.MINIMUM
    only_wide = lambda aligned: "wide" in dict(aligned)  # noqa: E731
    claim = solve(world(knobs, only_wide))
    assert set(claim.aligned) == {"wide"} and claim.word is Word.IRREDUCIBLE
    assert claim.untried.smaller == 2**4 - 1
    claim = solve(world(knobs, only_wide), monotone=True, prove=Word.MINIMUM)
    assert claim.word is Word.MINIMUM and claim.assumption and claim.executions.run <= 6


def test_the_cheaper_of_two_singles_is_the_minimum(world, knob, solve):
    truth = lambda aligned: bool({"dear", "cheap"} & dict(aligned).keys())  # noqa: E731
    knobs = [knob("cheap", cost=1.0, suspicion=0.0), knob("dear", cost=2.0, suspicion=9.0), knob("other", cost=1.0)]
    claim = solve(world(knobs, truth), prove=Word.MINIMUM)
    assert set(claim.aligned) == {"cheap"} and claim.word is Word.MINIMUM
    assert {"dear": "on"} in claim.minimal_sets or len(claim.minimal_sets) == 1


def test_of_equal_answers_the_one_that_is_proven_is_claimed(knob, observe):
    """Two pairs pass; the parts of one were executed, those of the other, first in order, were not."""
    problem = Problem(knobs=[knob(name) for name in "abcd"])
    known = [("", False), ("abcd", True), ("ab", True), ("cd", True), ("c", False), ("d", False)]
    outcomes = [observe(dict.fromkeys(names, "on"), Status.PASS if within else Status.FAIL) for names, within in known]
    session = Search(problem, outcomes=outcomes)
    assert not session.ask()
    claim = session.claim()
    assert set(claim.aligned) == {"c", "d"} and claim.word is Word.IRREDUCIBLE
    assert claim.minimal_sets == ({"c": "on", "d": "on"},)


def test_invalid_identity_is_mended_by_semantic_identity(world, knob):
    def execute(trial):
        return Outcome(status=Status.PASS if "temperature" in trial.aligned else Status.INVALID_IDENTITY)

    problem = world([knob("temperature", logical=True), knob("dtype"), knob("cache")], bool).problem
    claim = search(problem, execute)
    assert set(claim.aligned) == {"temperature"}
    assert (claim.rung.level, claim.rung.satisfied) == (Level.L0, True)


def test_the_search_passes_on_what_executing_raises(world, knob):
    def execute(trial):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(world([knob("a")], bool).problem, execute)
