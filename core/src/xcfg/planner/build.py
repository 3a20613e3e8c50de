"""From an experiment to a plan: expand, build both sides of each case, judge, name, select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from xcfg.errors import InvalidInput, NothingSelected
from xcfg.model.case import Case
from xcfg.model.experiment import Experiment, Mode
from xcfg.model.plan import Plan
from xcfg.planner.cases import Judge
from xcfg.planner.catalog import Catalog
from xcfg.planner.constraints import CONSTRAINT
from xcfg.planner.counting import MAX_CASES, too_many
from xcfg.planner.dimensions import check_coordinates
from xcfg.planner.planning import Planning
from xcfg.planner.profile_cases import profile_cases
from xcfg.planner.profiles import find_profiles
from xcfg.plugin.stdout import stdout_to_stderr

__all__ = ["MAX_CASES", "build_plan", "plan_cases", "unaligned"]


def build_plan(
    experiment: Experiment,
    *,
    root: Path,
    registry: Catalog,
    mode: Mode | None = None,
    profiles: Sequence[str] = (),
    slice_name: str = "",
    filters: Sequence[str] = (),
    max_cases: int = MAX_CASES,
    limit: int | None = None,
) -> Plan:
    """The cases of an experiment, the baseline first, then the axes, then the explicit cases.

    ``mode`` replaces the experiment's. ``profiles`` (core's, other plugins' and the experiment's own) give their cases
    in the place of those from the axes. A slice and filters select cases but never change ids or dimensions, so that
    selections of one experiment meet in one cube; a ``limit`` of active tokens makes other cases of them. Raises
    InvalidInput on an unknown profile, slice or filter, where there are more than ``max_cases`` cases and where
    constraints rule out all; NothingSelected where none is left; PluginError from plugins.
    """
    planning = Planning.of(experiment, root, registry, mode, profiles, slice_name, filters, limit)
    planning.check(max_cases)
    with stdout_to_stderr():  # once for the vetoes of all cases
        first, *chosen = _chosen(planning, _asked(profiles, slice_name, filters))
    if len(chosen) > max_cases:
        raise too_many(len(chosen), max_cases, planning.experiment.mode)
    check_coordinates(chosen)
    return Plan(
        experiment=planning.experiment,
        root=str(root),
        baseline=first.id,
        dimensions=planning.maker.dimensions,
        tokens=planning.tokens,
        cases=chosen,
        reference=None if first is chosen[0] else first,
    )


def plan_cases(
    experiment: Experiment,
    *,
    root: Path,
    registry: Catalog,
    mode: Mode | None = None,
    slice_name: str = "",
    filters: Sequence[str] = (),
) -> Iterator[Case]:
    """The cases that :func:`build_plan` would select, each made when it is asked for, however many there are.

    A product of any size takes the same memory. Raises as :func:`build_plan` does, but for the number of cases.
    """
    planning = Planning.of(experiment, root, registry, mode, (), slice_name, filters)
    return (made.case for made in planning.made() if planning.wants(made))


def unaligned(experiment: Experiment, *, root: Path, registry: Catalog, profiles: Sequence[str]) -> Mapping[str, str]:
    """Knobs that differ in production and that these profiles leave so, with the reason. Raises as the plan does."""
    planning = Planning.of(experiment, root, registry, None, (), "", ())
    return profile_cases(Judge.of(planning.maker), find_profiles(experiment, profiles, registry)).unaligned


def _chosen(planning: Planning, asked: str) -> list[Case]:
    """The baseline, and then the selected cases, it again among them where it is one."""
    kept: list[Case] = []
    broken: dict[str, None] | None = {}
    number = 0
    for number, made in enumerate(planning.made(), 1):
        case = made.case
        if number == 1:
            kept.append(case)
        if planning.wants(made):
            kept.append(case)
        if case.rejected is None or case.rejected.kind != CONSTRAINT:
            broken = None
        elif broken is not None:
            broken[case.rejected.reason] = None
    if broken is not None:
        message = f"the constraints leave none of {number} cases, the baseline included"
        raise InvalidInput(message, where="constraints", hint=f"their reasons: {'; '.join(broken)}")
    if len(kept) == 1:
        hint = "`xcfg plan` without them lists the cases"
        raise NothingSelected(f"no case is left of {number}", where=asked, hint=hint)
    return kept


def _asked(profiles: Sequence[str], slice_name: str, filters: Sequence[str]) -> str:
    """The selection as it was given on the command line."""
    named = [f"--profile {name}" for name in profiles] + [f"--slice {slice_name}"] * bool(slice_name)
    return " ".join([*named, *(f"--filter {text}" for text in filters)])
