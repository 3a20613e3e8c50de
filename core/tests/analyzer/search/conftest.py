"""A world with a known answer: it executes trials, keeps books of its own and checks a claim by brute force."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import product

import pytest

from xcfg.analyzer.search.outcome import Observed, Outcome
from xcfg.analyzer.search.problem import AlignableKnob, Options, Problem, Word
from xcfg.analyzer.search.session import Search
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Role
from xcfg.model.status import Status

ROLLOUT, TRAINING = Role.ROLLOUT, Role.TRAINING
STATUS = {True: Status.PASS, False: Status.FAIL, None: Status.UNSUPPORTED}


def frozen(aligned):
    """An alignment as a hashable set of pairs."""
    return frozenset(aligned.items())


class World:
    """Knobs and the truth about every alignment: True, False, or None where it cannot be built.

    ``truth`` takes a frozenset of (knob, value). The books (side runs on disk, warm engines) are kept by other means
    than the search's and have to agree with what each trial says of itself.
    """

    def __init__(self, knobs, truth):
        self.knobs = tuple(knobs)
        self.truth = truth
        self.problem = Problem(knobs=self.knobs)
        self.executed = {}
        self.disk = set()
        self.warm = {}
        self.constructions = 0
        self.runs = 0

    def side(self, aligned, role, *, engine=False):
        """The part of an alignment that is one side's configuration, or its engine."""
        return frozenset(
            (knob.name, aligned[knob.name])
            for knob in self.knobs
            if knob.name in aligned and role in knob.sides and not (engine and knob.lifecycle is Lifecycle.REQUEST)
        )

    def outcome(self, trial):
        """The outcome of one execution. Noise is a subclass's."""
        return Outcome(status=STATUS[self.truth(frozen(trial.aligned))])

    def execute(self, trial):
        """Execute a trial, and hold it to what it said it would cost."""
        aligned = dict(trial.aligned)
        run = [role for role in Role if trial.repeat or (role, self.side(aligned, role)) not in self.disk]
        build = [role for role in run if trial.repeat or self.warm.get(role) != self.side(aligned, role, engine=True)]
        assert trial.free == (not run), trial
        assert trial.constructions == len(build), trial
        assert trial.repeat == (frozen(aligned) in self.executed), trial
        outcome = self.outcome(trial)
        self.executed.setdefault(frozen(aligned), []).append(outcome)
        if outcome.status is not Status.UNSUPPORTED:
            self.constructions += len(build)
            for role in run:
                self.warm[role] = self.side(aligned, role, engine=True)
            self.disk |= {(role, self.side(aligned, role)) for role in Role}
        self.runs += bool(run)
        return outcome

    @cached_property
    def keys(self):
        """Every alignment, production included, with its key."""
        return {aligned: self.key(aligned) for aligned in self.alignments()}

    def alignments(self):
        """Every alignment, production included."""
        names = [knob.name for knob in self.knobs]
        for values in product(*[(None, *knob.candidates) for knob in self.knobs]):
            yield frozenset((name, value) for name, value in zip(names, values, strict=True) if value is not None)

    def key(self, aligned):
        """Scope, knobs, cost, intrusion, maintenance of a set, straight from the definition."""
        chosen = [knob for knob in self.knobs if knob.name in dict(aligned)]
        return (
            max((knob.semantic_scope for knob in chosen), default=-1),
            len(chosen),
            sum(Fraction(knob.cost) for knob in chosen),
            sum(knob.intrusion for knob in chosen),
            sum(knob.maintenance for knob in chosen),
        )

    def smaller(self, aligned):
        """The alignments of smaller sets than this one, production left out."""
        return [other for other, key in self.keys.items() if other and key < self.keys[aligned]]

    def parts(self, aligned):
        """The alignments of proper subsets of the knobs of this one, production left out."""
        names = dict(aligned).keys()
        return [other for other in self.keys if other and dict(other).keys() < names]


def check(world, claim, options, holds):
    """Hold a claim to the truth and to what was executed; ``holds``: whether the world is monotone."""
    for entry in claim.proof:
        assert entry.outcome in world.executed[frozen(entry.aligned)]
    if claim.word is None:
        assert claim.aligned is None and not claim.verified and not claim.minimal_sets
        return
    answer = frozen(claim.aligned)
    assert world.truth(answer) is True
    assert claim.minimal_sets[0] == claim.aligned
    assert set(claim.still_different) == {knob.name for knob in world.knobs} - claim.aligned.keys()
    smaller, parts = world.smaller(answer), world.parts(answer)
    proven = {frozen(entry.aligned) for entry in claim.proof}
    if claim.verified and (holds or not claim.assumption):
        assert not any(world.truth(other) for other in parts)
    if claim.word is Word.MINIMUM and (holds or not claim.assumption):
        assert not any(world.truth(other) for other in smaller)
    if claim.verified and not claim.assumption:
        assert {answer, *parts} <= proven
    if claim.word is Word.MINIMUM and not claim.assumption:
        assert set(smaller) <= proven
    if claim.verified and claim.assumption:
        assert options.monotone and not claim.contradictions
        single_less = {answer - {literal} for literal in answer} - {frozenset()}
        assert single_less <= proven
        failing = [other for other in proven if world.truth(other) is False]
        resting = smaller if claim.word is Word.MINIMUM else parts
        assert all(other in world.executed or any(other <= fails for fails in failing) for other in resting)
    assert claim.untried.smaller == len(smaller)
    assert claim.untried.executed == sum(other in world.executed for other in smaller)
    if claim.untried.first is not None:
        assert frozen(claim.untried.first) in set(smaller) - world.executed.keys()
    assert (claim.untried.first is None) == (claim.word is Word.MINIMUM)


@pytest.fixture(scope="session")
def world():
    """The class of worlds."""
    return World


@pytest.fixture(scope="session")
def knob():
    """A knob of one candidate, ``"on"``, on one or both sides."""

    def build(name, *sides, candidates=("on",), **kwargs):
        return AlignableKnob(name=name, candidates=candidates, sides=sides or (ROLLOUT,), **kwargs)

    return build


@pytest.fixture(scope="session")
def solve():
    """Search a world to the end, check the claim by brute force, and see that resuming gives it again for nothing."""

    def run(world, *, holds=True, **kwargs):
        options = Options(**kwargs)
        search = Search(world.problem, options)
        while trials := search.ask():
            assert len(trials) == 1 or all(trial.free for trial in trials)
            for trial in trials:
                search.tell(trial, world.execute(trial))
        claim = search.claim()
        check(world, claim, options, holds)
        assert claim.executions.constructions == world.constructions
        assert claim.executions.run == world.runs
        resumed = Search(world.problem, options, outcomes=search.observed)
        assert not resumed.ask()
        again = resumed.claim()
        assert (again.word, again.aligned, again.proof, again.assumption, again.untried) == (
            (claim.word, claim.aligned, claim.proof, claim.assumption, claim.untried)
        )
        assert again.executions.run == again.executions.constructions == 0
        return claim

    return run


@pytest.fixture(scope="session")
def observe():
    """An outcome on record, by status or by a number against a threshold of 1."""

    def build(aligned, status=Status.FAIL, **kwargs):
        return Observed(aligned=aligned, outcome=Outcome(status=status, **kwargs))

    return build
