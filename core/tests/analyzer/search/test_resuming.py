"""A search that is cut anywhere goes on as if it had not been."""

from __future__ import annotations

import json
import random

import pytest

from xcfg.analyzer.search.claim import Stopped
from xcfg.analyzer.search.outcome import Observed, Outcome
from xcfg.analyzer.search.problem import Options, Word
from xcfg.analyzer.search.session import Search, search
from xcfg.errors import InvalidInput
from xcfg.model.scorer import Role
from xcfg.model.status import Status


def build(world, knob):
    sides = [(Role.ROLLOUT,), (Role.TRAINING,), (Role.ROLLOUT, Role.TRAINING)]
    knobs = [knob(f"k{at}", *sides[at % 3], candidates=("a", "b")[: 1 + at % 2]) for at in range(7)]
    return world(knobs, lambda aligned: {"k2", "k3"} <= dict(aligned).keys())


@pytest.mark.parametrize("options", [Options(), Options(prove=Word.MINIMUM), Options(monotone=True)], ids=str)
def test_cut_anywhere(world, knob, options):
    whole = build(world, knob)
    claim = search(whole.problem, whole.execute, options)
    for cut in range(len(whole.executed) + 1):
        made, session, told = build(world, knob), None, 0
        session = Search(made.problem, options)
        while told < cut and (trials := session.ask()):
            for trial in trials[: cut - told]:
                session.tell(trial, made.execute(trial))
                told += 1
        assert session.claim().stopped is (Stopped.PROVEN if cut == len(whole.executed) else Stopped.UNFINISHED)
        resumed = search(made.problem, made.execute, options, outcomes=session.observed)
        assert made.executed.keys() == whole.executed.keys()
        assert (resumed.word, resumed.aligned, resumed.untried) == (claim.word, claim.aligned, claim.untried)
        assert resumed.executions.reused >= cut


def test_the_order_of_the_record_does_not_matter(world, knob):
    made = build(world, knob)
    session = Search(made.problem)
    while trials := session.ask():
        for trial in trials:
            session.tell(trial, made.execute(trial))
    entries = list(session.observed)
    for seed in range(5):
        random.Random(seed).shuffle(entries)
        again = Search(made.problem, outcomes=entries)
        assert not again.ask()
        assert (again.claim().word, again.claim().aligned) == (session.claim().word, session.claim().aligned)


def test_a_record_survives_json(world, knob, observe):
    made = world([knob("linked", candidates=({"rollout.dtype": "float32", "training.dtype": "float32"},))], bool)
    session = Search(made.problem)
    while trials := session.ask():
        for trial in trials:
            session.tell(trial, Outcome(status=Status.PASS if trial.aligned else Status.FAIL))
    text = json.dumps([{name: dict(value) for name, value in entry.aligned.items()} for entry in session.observed])
    entries = [
        Observed(aligned=aligned, outcome=entry.outcome)
        for aligned, entry in zip(json.loads(text), session.observed, strict=True)
    ]
    assert Search(made.problem, outcomes=entries).claim().word is Word.MINIMUM


def test_outcomes_from_elsewhere_are_used(world, knob, observe):
    made = build(world, knob)
    known = [observe({}), observe({"k2": "a", "k3": "a"}, Status.PASS)]
    made.disk = {(role, made.side(dict(entry.aligned), role)) for entry in known for role in Role}
    claim = search(made.problem, made.execute, outcomes=known)
    assert claim.executions.reused >= 2
    assert frozenset() not in made.executed


def test_only_outcomes_that_were_asked_for_are_taken(world, knob):
    made = build(world, knob)
    session = Search(made.problem)
    (trial,) = session.ask()
    session.tell(trial, made.execute(trial))
    with pytest.raises(InvalidInput, match="did not ask for"):
        session.tell(trial, Outcome(status=Status.PASS))
    with pytest.raises(InvalidInput, match="no knob k9"):
        Search(made.problem, outcomes=[Observed(aligned={"k9": "a"}, outcome=Outcome(status=Status.PASS))])


def test_asking_twice_gives_the_same(world, knob):
    session = Search(build(world, knob).problem)
    assert session.ask() == session.ask()
