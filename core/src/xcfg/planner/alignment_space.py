"""Everything that aligning knobs can make of production: the choices, and the case of any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from xcfg.errors import InvalidInput
from xcfg.model.case import Case
from xcfg.model.experiment import Experiment, ProfileSpec
from xcfg.model.json import Json, freeze, tupled
from xcfg.model.knob import Knob
from xcfg.model.plan import Plan
from xcfg.planner.alignment import alignments
from xcfg.planner.assignment import same
from xcfg.planner.cases import Judge
from xcfg.planner.catalog import Catalog
from xcfg.planner.dimensions import dimensions
from xcfg.planner.draft import changed_draft
from xcfg.planner.planning import case_maker
from xcfg.planner.profile_cases import profile_cases

REFERENCE = "A0"
_REFERENCE = {REFERENCE: ProfileSpec(summary="Fully aligned reference", differ=((),))}

Chosen = Mapping[str, Mapping[str, Json]]
"""Knob name to the assignment it is aligned by; knobs that are absent keep their production values."""


@frozen(kw_only=True)
class Choice:
    """A knob that can be aligned. ``candidates`` are assignments, knob to value, the aligned one first."""

    knob: Knob
    candidates: tuple[Mapping[str, Json], ...] = field(converter=freeze)


@frozen(kw_only=True)
class AlignmentSpace:
    """Production, the choices there are and, in ``unaligned``, why each other knob keeps its production value."""

    experiment: Experiment
    root: Path
    tokens: Json
    judge: Judge
    choices: tuple[Choice, ...] = field(converter=tupled)
    unaligned: Mapping[str, str] = field(converter=freeze)

    @classmethod
    def of(cls, experiment: Experiment, root: Path, catalog: Catalog, tokens: Json | None = None) -> AlignmentSpace:
        """The space of an experiment; ``tokens`` as declared, read from its files where they are not given.

        A knob's candidates are its aligned assignment and then the further values of its axis. What the aligned
        reference (profile A0) has to leave out so that it can run is no choice. Raises as planning the profile does.
        """
        tokens, maker = case_maker(experiment, root, catalog, tokens)
        judge = Judge.of(maker)
        reference = profile_cases(judge, _REFERENCE)
        kept = reference.drafts[0].own
        choices = []
        for name, item in sorted(alignments(maker).found.items()):
            if all(knob in kept and same(value, kept[knob]) for knob, value in item.sets.items()):
                values = [maker.changes({name: value}) for value in experiment.axes.get(name, ())]
                further = [sets for sets in values if sets and sets != dict(item.sets)]
                choices.append(Choice(knob=item.knob, candidates=(item.sets, *further)))
        varied = [changed_draft(maker.baseline, sets) for choice in choices for sets in choice.candidates]
        maker = evolve(maker, dimensions=dimensions(experiment, varied, maker.baseline, maker.values))
        return cls(
            experiment=experiment,
            root=root,
            tokens=tokens,
            judge=Judge.of(maker),
            choices=choices,
            unaligned=reference.unaligned,
        )

    @property
    def production(self) -> Case:
        """The case with nothing aligned."""
        return self.judge.judged(self.judge.maker.make(self.judge.maker.baseline)).case

    def case(self, chosen: Chosen) -> Case:
        """The case of a choice, judged. Raises InvalidInput where two assignments set one knob to different values."""
        sets: dict[str, Json] = {}
        for name, assignment in chosen.items():
            for knob, value in assignment.items():
                if not same(sets.setdefault(knob, value), value):
                    message = f"aligning {name} sets {knob} to {value!r}, another aligned knob to {sets[knob]!r}"
                    raise InvalidInput(message, where=f"aligned.{name}")
        return self.judge.case(sets) if sets else self.production

    def chosen(self, case: Case) -> Chosen | None:
        """The choice that a case is; None where it is none, for example with another scorer."""
        if any(name not in case.axes for name in case.changed):
            return None
        changes = {name: case.axes[name] for name in case.changed}
        found: dict[str, Mapping[str, Json]] = {}
        for choice in self.choices:
            for sets in choice.candidates:
                if all(knob in changes and same(value, changes[knob]) for knob, value in sets.items()):
                    found.setdefault(choice.knob.name, sets)
        return found if self.case(found).id == case.id else None

    def plan(self, cases: Sequence[Case]) -> Plan:
        """A plan of some of the cases."""
        production = self.production
        return Plan(
            experiment=self.experiment,
            root=str(self.root),
            baseline=production.id,
            dimensions=self.judge.maker.dimensions,
            tokens=self.tokens,
            cases=cases,
            reference=None if any(case.id == production.id for case in cases) else production,
        )
