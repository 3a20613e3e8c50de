"""From an experiment to a plan: expand, build both sides of each case, judge, name, select."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from xcfg.errors import InvalidInput, NothingSelected, XcfgError
from xcfg.model.case import Case, Rejection, SideConfig, case_id
from xcfg.model.codec import unstructure
from xcfg.model.experiment import Experiment, Mode
from xcfg.model.ids import canonical
from xcfg.model.json import Json
from xcfg.model.knob import Knob
from xcfg.model.plan import Plan
from xcfg.model.scorer import Role
from xcfg.planner.assignment import SIDE_DIMENSIONS, baseline_values, changed_names, coordinates
from xcfg.planner.capability import unsupported, with_idle
from xcfg.planner.catalog import Catalog
from xcfg.planner.check_names import BASELINE
from xcfg.planner.constraints import broken_constraint
from xcfg.planner.draft import Draft, Pick, baseline_draft, explicit_drafts
from xcfg.planner.isolation import check_isolated
from xcfg.planner.one_at_a_time import one_at_a_time
from xcfg.planner.product import product, product_count
from xcfg.planner.select import Filter, find_slice, in_slice, narrowed, parse_filters, passes
from xcfg.planner.sides import Side, SideRequest, build_side
from xcfg.planner.tokens import declared_tokens

MAX_CASES = 256
"""More cases than this are refused unless asked for: a product grows faster than one thinks."""


def build_plan(
    experiment: Experiment,
    *,
    root: Path,
    registry: Catalog,
    mode: Mode | None = None,
    slice_name: str = "",
    filters: Sequence[str] = (),
    max_cases: int = MAX_CASES,
) -> Plan:
    """The cases of an experiment, the baseline first, then the axes, then the explicit cases.

    ``mode`` replaces the experiment's. A slice and filters select cases but never change ids or dimensions, so that
    selections of one experiment meet in one cube. Raises InvalidInput on an unknown slice or filter and where there
    are more than ``max_cases`` cases, NothingSelected where none is left, PluginError from plugins.
    """
    experiment = experiment if mode is None else evolve(experiment, mode=mode)
    knobs = registry.knobs()
    wanted = parse_filters(filters, knobs)
    spec = find_slice(experiment, slice_name)
    expansion = _expand(experiment, wanted, max_cases)
    maker = _Maker.of(experiment, root, registry, knobs, expansion)
    made = maker.make(expansion)
    chosen = [
        item.case
        for item in made
        if passes(wanted, item.values, item.case.name)
        and (spec is None or in_slice(spec, item.names, item.case.changed, knobs))
    ]
    if not chosen:
        asked = [f"--slice {slice_name}"] * bool(slice_name) + [f"--filter {text}" for text in filters]
        raise NothingSelected(f"no case is left of {len(made)}", where=" ".join(asked))
    if len(chosen) > max_cases:
        raise _too_many(len(chosen), max_cases, experiment.mode)
    baseline = made[0].case
    return Plan(
        experiment=experiment,
        root=str(root),
        baseline=baseline.id,
        dimensions=maker.dimensions,
        tokens=maker.tokens,
        cases=chosen,
        reference=None if baseline in chosen else baseline,
    )


def _expand(experiment: Experiment, wanted: Sequence[Filter], max_cases: int) -> list[Draft]:
    """The drafts, the baseline first. A product that is too large is counted and refused, never made."""
    baseline = baseline_draft(experiment, BASELINE)
    drafts = one_at_a_time(experiment.axes, baseline)
    if experiment.mode is Mode.PRODUCT:
        axes = narrowed(experiment.axes, wanted)
        if (count := product_count(axes)) > max_cases:
            raise _too_many(count, max_cases, experiment.mode)
        drafts = product(axes, baseline)
    return [baseline, *itertools.chain(drafts, explicit_drafts(experiment, baseline))]


def _too_many(count: int, max_cases: int, mode: Mode) -> InvalidInput:
    ways = ["--max-cases to allow them", "--filter or fewer values on the axes"]
    ways += ["--mode one_at_a_time"] if mode is Mode.PRODUCT else []
    return InvalidInput(f"{count} cases, more than the {max_cases} allowed", where="axes", hint=", or ".join(ways))


@frozen(kw_only=True)
class _Made:
    """A case, its full coordinates and every name it goes by (equal cases are one)."""

    case: Case
    values: Mapping[str, Json]
    names: list[str] = field(factory=list)


@frozen(kw_only=True)
class _Maker:
    """Builds cases of one experiment."""

    experiment: Experiment
    catalog: Catalog
    knobs: Mapping[str, Knob]
    tokens: Json
    contract: Json
    baseline: Draft
    baseline_values: Mapping[str, Json]
    dimensions: tuple[str, ...]

    @classmethod
    def of(
        cls, experiment: Experiment, root: Path, catalog: Catalog, knobs: Mapping[str, Knob], drafts: Sequence[Draft]
    ) -> _Maker:
        values = baseline_values(experiment, knobs)
        return cls(
            experiment=experiment,
            catalog=catalog,
            knobs=knobs,
            tokens=declared_tokens(experiment.tokens, root),
            contract=unstructure(catalog.contract(experiment.contract, root=root).ref),
            baseline=drafts[0],
            baseline_values=values,
            dimensions=_dimensions(experiment.axes, drafts, values),
        )

    def make(self, drafts: Iterable[Draft]) -> list[_Made]:
        """One case a distinct pair of sides, in the order of the drafts; vetoes are asked once for each."""
        found: dict[str, _Made] = {}
        baseline: Case | None = None
        for draft in drafts:
            made = self._draft(draft)
            known = found.get(made.case.id)
            if known is not None:
                found[made.case.id] = _merged(known, draft)
                continue
            if baseline is None:
                baseline = made.case
            if draft.axis:
                check_isolated(made.case, baseline, draft.axis)
            veto = None if made.case.rejected else self.catalog.reject_case(made.case, baseline)
            found[made.case.id] = evolve(made, case=evolve(made.case, rejected=made.case.rejected or veto))
        cases = list(found.values())
        _check_coordinates(cases)
        return cases

    def _draft(self, draft: Draft) -> _Made:
        values = coordinates(draft, self.baseline_values)
        rollout = self._side(Role.ROLLOUT, draft, values)
        training = self._side(Role.TRAINING, draft, values)
        rejected, configs = self._judge(draft, values, rollout, training)
        case = Case(
            id=case_id(*configs, self.tokens, self.contract),
            name=draft.name,
            axes={name: values.get(name) for name in self.dimensions},
            changed=changed_names(values, coordinates(self.baseline, self.baseline_values)),
            rollout=configs[0],
            training=configs[1],
            rejected=rejected,
        )
        return _Made(case=case, values=values, names=[draft.name] if draft.name else [])

    def _side(self, role: Role, draft: Draft, values: Mapping[str, Json]) -> Side:
        pick, usual = _pick(draft, role), _pick(self.baseline, role)
        request = SideRequest(
            role=role,
            pick=pick,
            values=values,
            named={*self.experiment.baseline, *draft.own},
            own=draft.own,
            replaced=pick.scorer != usual.scorer,
        )
        return build_side(request, self.experiment, self.catalog, self.knobs)

    def _judge(
        self, draft: Draft, values: Mapping[str, Json], rollout: Side, training: Side
    ) -> tuple[Rejection | None, tuple[SideConfig, SideConfig]]:
        named = {*self.experiment.baseline, *draft.own}
        incapable, idle = unsupported(rollout, training, named, self.knobs)
        knob_values = {name: value for name, value in values.items() if name in self.knobs}
        rejected = broken_constraint(self.experiment.constraints, knob_values) or incapable
        return rejected, (with_idle(rollout.config, idle, values), with_idle(training.config, idle, values))


def _pick(draft: Draft, role: Role) -> Pick:
    return draft.rollout if role is Role.ROLLOUT else draft.training


def _merged(known: _Made, draft: Draft) -> _Made:
    """Equal cases are one: it goes by all their names and shows the first that a user gave it."""
    names = [*known.names, draft.name] if draft.name else known.names
    return evolve(known, names=names, case=evolve(known.case, name=known.case.name or draft.name))


def _dimensions(
    axes: Mapping[str, Sequence[Json]], drafts: Sequence[Draft], values: Mapping[str, Json]
) -> tuple[str, ...]:
    """Declared axes in the order of the file, then what explicit cases vary besides: knobs, scorers, checkpoints."""
    usual = coordinates(drafts[0], values)
    varied = {name for draft in drafts if draft.explicit for name in changed_names(coordinates(draft, values), usual)}
    more = sorted(varied - {*axes, *SIDE_DIMENSIONS})
    return (*axes, *more, *(name for name in SIDE_DIMENSIONS if name in varied))


def _check_coordinates(cases: Sequence[_Made]) -> None:
    """Two cases in one cell of the cube would overwrite each other."""
    cells: dict[bytes, str] = {}
    for item in cases:
        cell = canonical(item.case.axes)
        other = cells.setdefault(cell, item.case.id)
        if other != item.case.id:
            raise XcfgError(f"cases {other} and {item.case.id} have the same coordinates", where="planner")
