"""A hostile caller: random truths, broken and flaky executions, side runs on disk, budgets, searches cut and shuffled.

Nothing here is reused from the search or from the worlds of the other tests: what was executed, what may be trusted
and which sets are smaller is worked out anew from the definitions.
"""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest

from xcfg.analyzer.search.claim import Stopped
from xcfg.analyzer.search.outcome import Outcome
from xcfg.analyzer.search.problem import AlignableKnob, Options, Problem, Word
from xcfg.analyzer.search.session import Search, SideRun
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Role
from xcfg.model.status import Status

MARGIN = 0.1
BROKEN = (Status.TIMEOUT, Status.LAUNCH_ERROR, Status.SCORER_ERROR)


class Hostile:
    """A seeded instance: its problem, its options and what an execution of each alignment gives."""

    def __init__(self, seed):
        self.lot = lot = random.Random(f"hostile {seed}")
        self.knobs = [
            AlignableKnob(
                name=f"k{at}",
                candidates=tuple(range(1, 1 + lot.choice([1, 1, 1, 2, 3]))),
                sides=lot.choice([(Role.ROLLOUT,), (Role.TRAINING,), tuple(Role)]),
                lifecycle=lot.choice([Lifecycle.ENGINE, Lifecycle.REQUEST]),
                semantic_scope=lot.choice([0, 0, 1]),
                cost=lot.choice([0, 0.1, 0.2, 0.3]),
                intrusion=lot.randint(0, 1),
                suspicion=lot.random(),
            )
            for at in range(lot.randint(1, 6))
        ]
        values = product(*[(0, *knob.candidates) for knob in self.knobs])
        self.every = [
            frozenset((knob.name, value) for knob, value in zip(self.knobs, row, strict=True) if value)
            for row in values
        ]
        holes, passing = lot.choice([0, 0, 0.2]), lot.choice([0.05, 0.2, 0.5, 0.8])
        self.truth = {aligned: None if lot.random() < holes else lot.random() < passing for aligned in self.every}
        self.truth[frozenset()] = False
        if lot.random() < 0.9:
            self.truth[frozenset((knob.name, 1) for knob in self.knobs)] = True
        self.near = self.some(lot.choice([0, 0, 0.3]))
        self.dead = self.some(lot.choice([0, 0, 0.1, 0.3])) - {frozenset()}
        self.options = Options(
            prove=lot.choice([Word.IRREDUCIBLE, Word.MINIMUM]),
            monotone=lot.random() < 0.4,
            budget=lot.choice([None, None, lot.randint(0, 20)]),
            margin=MARGIN,
            repeats=lot.randint(0, 3),
            keeps_engines=lot.random() < 0.7,
        )
        self.disk = [
            SideRun(role=lot.choice(list(Role)), aligned=dict(lot.choice(self.every)))
            for _ in range(lot.choice([0, 0, 2, 6]))
        ]
        self.runs = {}
        self.built = 0

    def some(self, share):
        return {aligned for aligned in self.every if self.lot.random() < share}

    def execute(self, trial):
        """Never twice, unless near the threshold, and then no oftener than the options say."""
        aligned = frozenset(trial.aligned.items())
        before = self.runs.setdefault(aligned, [])
        assert trial.repeat == bool(before) and len(before) <= self.options.repeats
        assert not before or aligned in self.near
        before.append(self.outcome(aligned, bool(before)))
        self.built += trial.constructions * (before[-1].status is not Status.UNSUPPORTED)
        return before[-1]

    def outcome(self, aligned, again):
        if self.truth[aligned] is None:
            return Outcome(status=Status.UNSUPPORTED)
        near = aligned in self.near
        if aligned in self.dead and (not near or (again and self.lot.random() < 0.7)):
            return Outcome(status=self.lot.choice(BROKEN))
        within = self.truth[aligned] != (near and self.lot.random() < 0.15)
        distance = (0.05 if near else 0.9) * (-1 if within else 1)
        status = Status.PASS if within else Status.FAIL
        return Outcome(status=status, within=within, max_abs_dlogp=1.0 + distance, threshold=1.0)

    def known(self, aligned):
        """What the executions of an alignment allow to say of it; None where they allow nothing."""
        runs = self.runs.get(aligned, [])
        judged = [run.within for run in runs if run.within is not None]
        if len(set(judged)) == 2:
            return "unsettled"
        if any(run.max_abs_dlogp is not None and abs(run.max_abs_dlogp - 1.0) < MARGIN for run in runs):
            return judged[0] if len(judged) > self.options.repeats else None
        if judged:
            return judged[0]
        return "unsupported" if runs and runs[0].status is Status.UNSUPPORTED else None

    def key(self, aligned):
        chosen = [knob for knob in self.knobs if knob.name in dict(aligned)]
        cost = sum(Fraction(knob.cost) for knob in chosen)
        scope = max((knob.semantic_scope for knob in chosen), default=-1)
        return scope, len(chosen), cost, sum(knob.intrusion for knob in chosen)


def played(hostile):
    """The claim. Without a budget the search is now and then thrown away and resumed from its record, shuffled."""
    problem = Problem(knobs=hostile.knobs)
    session = Search(problem, hostile.options, on_disk=hostile.disk)
    while trials := session.ask():
        for trial in trials:
            session.tell(trial, hostile.execute(trial))
        if hostile.options.budget is None and hostile.lot.random() < 0.05:
            record = hostile.lot.sample(session.observed, len(session.observed))
            session = Search(problem, hostile.options, outcomes=record, on_disk=hostile.disk)
    return session.claim()


def judge(hostile, claim):
    """Hold a claim to what was executed; with no answer it must be silent."""
    options = hostile.options
    assert options.budget is None or hostile.built <= options.budget
    assert claim.stopped is not Stopped.UNFINISHED
    if claim.aligned is None:
        assert claim.word is None
        return
    answer = frozenset(claim.aligned.items())
    assert hostile.known(answer) is True
    failing = [other for other in hostile.every if hostile.known(other) is False]
    passing = [other for other in hostile.every if hostile.known(other) is True]
    if not options.monotone or any(lower <= upper for lower in passing for upper in failing):
        assert not claim.assumption

    def excluded(other):
        assumed = bool(claim.assumption) and any(other <= upper for upper in failing)
        return assumed or hostile.known(other) in (False, "unsettled", "unsupported")

    names = dict(answer).keys()
    if claim.verified:
        assert all(excluded(other) for other in hostile.every if other and dict(other).keys() < names)
    if claim.word is Word.MINIMUM:
        rank = hostile.key(answer)
        assert all(excluded(other) for other in hostile.every if other and hostile.key(other) < rank)
    if claim.stopped is Stopped.PROVEN:
        assert claim.word is Word.MINIMUM or claim.word is options.prove


@pytest.mark.parametrize(("first", "last"), [(0, 300), pytest.param(300, 5000, marks=pytest.mark.full)])
def test_no_claim_goes_beyond_what_was_executed(first, last):
    stopped = set()
    for seed in range(first, last):
        hostile = Hostile(seed)
        claim = played(hostile)
        judge(hostile, claim)
        stopped.add(claim.stopped)
    assert stopped >= {Stopped.PROVEN, Stopped.BUDGET, Stopped.UNJUDGED_PARTS, Stopped.REFERENCE_FAILS}


def test_suspicion_orders_the_work_and_not_the_claim(world, knob):
    """The same lattice under ten orders of suspicion: a minimum of the same rank, whatever came first."""
    for seed in range(12):
        truth = random.Random(seed)
        table = {}

        def passes(aligned, truth=truth, table=table):
            return table.setdefault(aligned, len(aligned) == 6 or (len(aligned) > 0 and truth.random() < 0.2))

        ranks = set()
        for order in range(10):
            lot = random.Random(f"{seed} {order}")
            made = world([knob(f"k{at}", cost=at % 3, suspicion=lot.random()) for at in range(6)], passes)
            session = Search(made.problem, Options(prove=Word.MINIMUM))
            while trials := session.ask():
                for trial in trials:
                    session.tell(trial, made.execute(trial))
            claim = session.claim()
            assert claim.word is Word.MINIMUM
            ranks.add(made.key(frozenset(claim.aligned.items())))
        assert len(ranks) == 1
