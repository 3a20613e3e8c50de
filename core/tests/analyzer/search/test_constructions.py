"""What a search costs: free cases first, warm engines, side runs on disk, the budget."""

from __future__ import annotations

from itertools import product

import pytest

from xcfg.analyzer.search.claim import Stopped
from xcfg.analyzer.search.decide import Purpose
from xcfg.analyzer.search.problem import Options, Word
from xcfg.analyzer.search.session import Search, SideRun
from xcfg.errors import InvalidInput
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Role

ROLLOUT, TRAINING = Role.ROLLOUT, Role.TRAINING


def needs(*names):
    """A truth: these knobs have to be aligned."""
    return lambda aligned: set(names) <= dict(aligned).keys()


def played(world, options=None, **kwargs):
    """The search after its end, and its trials."""
    search, trials = Search(world.problem, options or Options(), **kwargs), []
    while asked := search.ask():
        for trial in asked:
            trials.append(trial)
            search.tell(trial, world.execute(trial))
    return search, trials


def test_every_product_of_side_runs_comes_before_anything_is_built(world, knob):
    made = world([knob(f"k{at}", side) for at, side in enumerate([ROLLOUT, TRAINING] * 3)], needs("k0", "k1", "k4"))
    search, asked = Search(made.problem), 0
    while trials := search.ask():
        if trials[0].purpose not in (Purpose.PRODUCTION, Purpose.FILL):
            halves = [[config for role, config in made.disk if role is side] for side in (ROLLOUT, TRAINING)]
            assert {left | right for left, right in product(*halves)} <= made.executed.keys()
            asked += 1
        for trial in trials:
            search.tell(trial, made.execute(trial))
    assert asked > 3
    claim = search.claim()
    assert set(claim.aligned) == {"k0", "k1", "k4"}
    assert claim.executions.reused == len(made.executed) - made.runs > 0
    assert claim.executions.exhaustive_would_be == 2**6


def test_a_knob_on_both_sides_forms_no_mixed_case(world, knob):
    made = world([knob("both", ROLLOUT, TRAINING), knob("one", ROLLOUT)], needs("both"))
    search, trials = played(made)
    assert set(search.claim().aligned) == {"both"}
    assert {trial.constructions for trial in trials} <= {0, 1, 2}
    assert next(trial for trial in trials if set(trial.aligned) == {"both"}).constructions == 1


def test_request_time_knobs_are_tried_on_the_warm_engine_first(world, knob):
    requests = [knob(f"request{at}", lifecycle=Lifecycle.REQUEST) for at in range(6)]
    engines = [knob(f"engine{at}") for at in range(2)]
    made = world(engines + requests, needs("request3"))
    search, trials = played(made)
    reference = next(at for at, trial in enumerate(trials) if trial.purpose is Purpose.REFERENCE)
    narrowing = [trial for trial in trials[reference + 1 :] if trial.purpose is Purpose.NARROW]
    assert narrowing[0].constructions == 0 and {"engine0", "engine1"} <= narrowing[0].aligned.keys()
    claim = search.claim()
    assert set(claim.aligned) == {"request3"} and claim.word is Word.MINIMUM
    assert claim.executions.constructions == made.constructions == 4
    assert claim.executions.run > 4


@pytest.mark.parametrize(("engines", "requests", "most"), [(2, 1, 7), (3, 2, 18), (3, 3, 20)])
def test_parts_that_differ_in_request_time_knobs_share_an_engine(world, knob, engines, requests, most):
    """All is needed, so every set is executed; a new engine a case would be 9, 33, 65."""
    names = [f"engine{at}" for at in range(engines)] + [f"request{at}" for at in range(requests)]
    lifecycles = {"e": Lifecycle.ENGINE, "r": Lifecycle.REQUEST}
    made = world([knob(name, lifecycle=lifecycles[name[0]]) for name in names], needs(*names))
    search, _ = played(made)
    claim = search.claim()
    assert set(claim.aligned) == set(names) and claim.word is Word.MINIMUM
    assert len(made.executed) == 2 ** len(names)
    assert claim.executions.constructions == made.constructions <= most


@pytest.mark.parametrize("lifecycle", [Lifecycle.ENGINE, Lifecycle.PROCESS, Lifecycle.BUILD])
def test_every_other_lifecycle_takes_a_new_engine(world, knob, lifecycle):
    made = world([knob("one", lifecycle=lifecycle), knob("two", lifecycle=lifecycle)], needs("one"))
    search, trials = played(made)
    assert [trial.constructions for trial in trials] == [2, *[1] * (len(trials) - 1)]
    assert search.claim().executions.constructions == len(trials) + 1


def test_a_pair_of_side_runs_on_disk_costs_nothing(world, knob):
    made = world([knob("left", ROLLOUT), knob("right", TRAINING)], needs("left", "right"))
    there = [SideRun(role=role, aligned=aligned) for role in Role for aligned in ({}, {"left": "on", "right": "on"})]
    made.disk = {(run.role, made.side(dict(run.aligned), run.role)) for run in there}
    search, trials = played(made, on_disk=there)
    assert all(trial.free for trial in trials)
    claim = search.claim()
    assert claim.executions.run == claim.executions.constructions == 0
    assert set(claim.aligned) == {"left", "right"} and claim.verified


def test_a_side_run_that_the_problem_does_not_have_is_refused(knob, world):
    made = world([knob("left")], needs("left"))
    with pytest.raises(InvalidInput, match="no knob other"):
        Search(made.problem, on_disk=[SideRun(role=ROLLOUT, aligned={"other": 1})])
    with pytest.raises(InvalidInput, match="aligned value 'off'"):
        Search(made.problem, on_disk=[SideRun(role=ROLLOUT, aligned={"left": "off"})])


def test_a_budget_is_kept_and_gives_the_best_answer_so_far(world, knob):
    def build():
        return world([knob(f"k{at}", [ROLLOUT, TRAINING][at % 2]) for at in range(10)], needs("k1", "k2", "k7"))

    whole, _ = played(build())
    total = whole.claim().executions.constructions
    sizes = []
    for budget in range(total + 2):
        made = build()
        search, _ = played(made, Options(budget=budget))
        claim = search.claim()
        assert made.constructions == claim.executions.constructions <= budget
        if claim.aligned is None:
            assert claim.word is None and budget < 4
        else:
            assert made.truth(frozenset(claim.aligned.items()))
            sizes.append(len(claim.aligned))
        assert (claim.stopped is Stopped.BUDGET) == (budget < total)
        assert claim.verified == (budget >= total)
        assert claim.verified or claim.word in (None, Word.SUFFICIENT)
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == 10 and sizes[-1] == 3


def test_more_budget_goes_on_from_what_is_known(world, knob):
    made = world([knob(f"k{at}") for at in range(8)], needs("k1", "k5"))
    first, _ = played(made, Options(budget=6))
    assert first.claim().stopped is Stopped.BUDGET
    second, _ = played(made, Options(budget=50), outcomes=first.observed)
    assert second.claim().verified
    assert first.claim().executions.constructions + second.claim().executions.constructions == made.constructions


def test_unsupported_cases_build_nothing(world, knob):
    made = world(
        [knob("one"), knob("two"), knob("three")],
        lambda aligned: None if dict(aligned).keys() == {"one"} else needs("two")(aligned),
    )
    search, _ = played(made)
    assert search.claim().executions.constructions == made.constructions


def test_without_engines_that_stay_every_side_run_that_is_not_on_disk_builds_one(world, knob):
    requests = [knob(f"request{at}", side, lifecycle=Lifecycle.REQUEST) for at, side in enumerate([ROLLOUT, TRAINING])]
    made = world([knob("engine"), *requests], needs("engine", "request1"))
    session, disk = Search(made.problem, Options(keeps_engines=False)), set()
    while trials := session.ask():
        for trial in trials:
            sides = {(role, made.side(dict(trial.aligned), role)) for role in Role}
            assert trial.constructions == len(sides - disk)
            disk |= sides
            session.tell(trial, made.outcome(trial))
    claim = session.claim()
    assert set(claim.aligned) == {"engine", "request1"} and claim.verified
    assert claim.executions.constructions == len(disk)
