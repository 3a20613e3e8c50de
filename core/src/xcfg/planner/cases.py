"""From a draft to a case: both sides built, judged, named, and proven to change what they declare."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import evolve, field, frozen

from xcfg.model.case import Case, Rejection
from xcfg.model.experiment import Experiment
from xcfg.model.json import Json, tupled
from xcfg.model.knob import Knob
from xcfg.model.scorer import Role
from xcfg.planner.assignment import baseline_values, changed_names, same, side_coordinates
from xcfg.planner.built import Built, Sides
from xcfg.planner.capability import idle_knobs, refusals, unsupported, with_idle
from xcfg.planner.case_ids import CaseIds
from xcfg.planner.catalog import Catalog
from xcfg.planner.constraints import Rules
from xcfg.planner.draft import Draft, changed_draft
from xcfg.planner.isolation import check_isolated


@frozen(kw_only=True)
class Made:
    """A case, its full coordinates and every name it goes by (equal cases are one)."""

    case: Case
    values: Mapping[str, Json]
    names: Sequence[str] = ()

    def named(self, name: str) -> Made:
        """The same case under one more name; it shows the first it was given."""
        if not name:
            return self
        return evolve(self, names=(*self.names, name), case=evolve(self.case, name=self.case.name or name))

    def rejected(self, rejection: Rejection | None) -> Made:
        """The same case, rejected if it was not and there is a reason."""
        if rejection is None or self.case.rejected is not None:
            return self
        return evolve(self, case=evolve(self.case, rejected=rejection))


@frozen(kw_only=True)
class CaseMaker:
    """Makes the cases of one experiment.

    ``values`` are the coordinates of the baseline: every knob's value and what scores its sides. ``dimensions`` are
    the names of those that a case shows.
    """

    experiment: Experiment
    catalog: Catalog
    knobs: Mapping[str, Knob]
    baseline: Draft
    values: Mapping[str, Json]
    sides: Sides
    rules: Rules
    dimensions: tuple[str, ...] = field(default=(), converter=tupled)

    @classmethod
    def of(cls, experiment: Experiment, catalog: Catalog, baseline: Draft, tokens: Json, contract: Json) -> CaseMaker:
        """``tokens`` and ``contract`` as they enter ids. Raises PluginError on ids that nobody brings."""
        knobs = catalog.knobs()
        values = baseline_values(experiment, knobs)
        return cls(
            experiment=experiment,
            catalog=catalog,
            knobs=knobs,
            baseline=baseline,
            values={**values, **side_coordinates(baseline)},
            rules=Rules(experiment.constraints),
            sides=Sides(experiment, catalog, baseline, values, CaseIds(tokens, contract)),
        )

    def make(self, draft: Draft) -> Made:
        """The case of a draft, before the plugins' vetoes (:meth:`vetoed`)."""
        rollout, training = self._built(draft)
        idle = idle_knobs(rollout.side, training.side)
        values = {**self.values, **draft.own}
        if draft.written:
            values |= side_coordinates(draft)
        configs = rollout.side.config, training.side.config
        if idle:
            configs = with_idle(configs[0], idle, values), with_idle(configs[1], idle, values)
        refused = unsupported(refusals(rollout.side, training.side, idle))
        case = Case(
            id=self.sides.ids.of(*configs) if idle else self.sides.ids.id(rollout.start, training.text),
            name=draft.name,
            axes={name: values.get(name) for name in self.dimensions},
            changed=changed_names(draft, self.baseline, self.values) if draft.written else tuple(sorted(draft.own)),
            rollout=configs[0],
            training=configs[1],
            rejected=self.rules.broken(values) or refused,
        )
        if not draft.written:
            check_isolated(case, case, *case.changed, found=rollout.changes | training.changes)
        return Made(case=case, values=values, names=(draft.name,) if draft.name else ())

    def changes(self, own: Mapping[str, Json]) -> dict[str, Json]:
        """What of ``own`` is not the baseline's; nor is null that no side sees, for that asks for nothing."""
        found = {name: value for name, value in own.items() if not same(value, self.values.get(name))}
        return {name: value for name, value in found.items() if value is not None or self._seen(name)}

    def refused(self, own: Mapping[str, Json], names: Collection[str]) -> dict[str, str]:
        """The knobs of ``names`` that the baseline's scorers cannot apply where ``own`` is set, with the reasons."""
        rollout, training = self._built(changed_draft(self.baseline, own))
        reasons = refusals(rollout.side, training.side, idle_knobs(rollout.side, training.side))
        return {name: said for name, said in reasons if name in names}

    def _seen(self, name: str) -> bool:
        """Whether null, given to the knob, changes a side."""
        rollout, training = self._built(changed_draft(self.baseline, {name: None}))
        return bool(rollout.changes or training.changes)

    def _built(self, draft: Draft) -> tuple[Built, Built]:
        return self.sides.built(Role.ROLLOUT, draft), self.sides.built(Role.TRAINING, draft)


@frozen(kw_only=True)
class Judge:
    """Asks the plugins too. ``reference`` is the baseline's case, which vetoes are told beside each."""

    maker: CaseMaker
    reference: Case

    @classmethod
    def of(cls, maker: CaseMaker) -> Judge:
        """The judge of a maker's cases."""
        return cls(maker=maker, reference=maker.make(maker.baseline).case)

    def judged(self, made: Made) -> Made:
        """The case as the plugins leave it; they are not asked about those that are rejected already."""
        if made.case.rejected is not None:
            return made
        return made.rejected(self.maker.catalog.reject_case(made.case, self.reference))

    def case(self, own: Mapping[str, Json]) -> Case:
        """The judged case that changes ``own``."""
        return self.judged(self.maker.make(changed_draft(self.maker.baseline, own))).case

    def vetoed(self, own: Mapping[str, Json]) -> bool:
        """Whether nothing but a veto keeps the case from being run."""
        made = self.maker.make(changed_draft(self.maker.baseline, own))
        return made.case.rejected is None and self.judged(made).case.rejected is not None
