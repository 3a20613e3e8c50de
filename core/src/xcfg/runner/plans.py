"""One folder, several plans: what an earlier run executed stays part of the folder's plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from xcfg.errors import InvalidInput
from xcfg.model.case import Case
from xcfg.model.ids import canonical
from xcfg.model.json import Json
from xcfg.model.plan import Plan


def merged(former: Plan | None, plan: Plan) -> Plan:
    """``plan`` with the cases of ``former`` that it does not have, after its own.

    Dimensions of both are kept, the former's first, so that values and axes append; whatever else tells two cases
    apart, such as a scorer that was exchanged between the runs, becomes a dimension. Experiment, baseline and root are
    ``plan``'s. Raises InvalidInput where two cases cannot be told apart by any coordinate.
    """
    if former is None:
        return plan
    known = {case.id for case in plan.cases}
    cases = (*plan.cases, *(case for case in former.cases if case.id not in known))
    usual = {**former.case(former.baseline).axes, **plan.case(plan.baseline).axes}
    dimensions = (*former.dimensions, *(name for name in plan.dimensions if name not in former.dimensions))
    dimensions = (*dimensions, *_telling_apart([_placed(case, dimensions, usual) for case in cases]))
    placed = [_placed(case, dimensions, usual) for case in cases]
    for twins in _cells(placed):
        raise InvalidInput(
            f"case {twins[0].id} differs from case {twins[1].id} of an earlier run in nothing that is a coordinate",
            where="--out",
            hint="run it into another folder",
        )
    reference = None if any(case.id == plan.baseline for case in placed) else plan.case(plan.baseline)
    return evolve(
        plan, dimensions=dimensions, cases=placed, reference=reference and _placed(reference, dimensions, usual)
    )


def _cells(cases: Sequence[Case]) -> list[list[Case]]:
    """Groups of cases that share one cell."""
    groups: dict[bytes, list[Case]] = {}
    for case in cases:
        groups.setdefault(canonical(case.axes), []).append(case)
    return [group for group in groups.values() if len(group) > 1]


def _telling_apart(cases: Sequence[Case]) -> list[str]:
    """Names of settings, besides the dimensions, in which cases of one cell differ."""
    names = set()
    for group in _cells(cases):
        settings = [_settings(case) for case in group]
        for name in {name for item in settings for name in item}:
            if len({canonical(item.get(name)) for item in settings}) > 1:
                names.add(name)
    return sorted(names)


def _settings(case: Case) -> dict[str, Json]:
    """What the sides of a case were asked for, by coordinate name; a knob whose value they do not share, by side."""
    sides = {"rollout": case.rollout.knobs, "training": case.training.knobs}
    shared = case.rollout.knobs.keys() & case.training.knobs.keys()
    apart = {name for name in shared if case.rollout.knobs[name] != case.training.knobs[name]}
    return {
        **{name: value for knobs in sides.values() for name, value in knobs.items() if name not in apart},
        **{f"{name} ({side})": knobs[name] for side, knobs in sides.items() for name in apart},
        "rollout.scorer": case.rollout.scorer,
        "training.scorer": case.training.scorer,
        "rollout.checkpoint": case.rollout.checkpoint.label,
        "training.checkpoint": case.training.checkpoint.label,
    }


def _placed(case: Case, dimensions: tuple[str, ...], usual: Mapping[str, Json]) -> Case:
    """The case with a coordinate along every dimension: planned, asked of a side, or the baseline's."""
    settings = {**usual, **_settings(case), **case.axes}
    return evolve(case, axes={name: settings.get(name) for name in dimensions})
