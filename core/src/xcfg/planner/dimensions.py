"""The coordinates that cases of an experiment have in the cube."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xcfg.errors import XcfgError
from xcfg.model.case import Case
from xcfg.model.experiment import Experiment
from xcfg.model.json import Json
from xcfg.planner.assignment import SIDE_DIMENSIONS, changed_names
from xcfg.planner.draft import Draft


def dimensions(
    experiment: Experiment, drafts: Iterable[Draft], baseline: Draft, values: Mapping[str, Json]
) -> tuple[str, ...]:
    """Axes in the order of the file, linked ones last, then what ``drafts`` vary besides: knobs, scorers, checkpoints.

    ``values`` are the baseline's coordinates.
    """
    axes = dict.fromkeys([*experiment.axes, *(name for table in experiment.linked.values() for name in table)])
    varied = {name for draft in drafts for name in changed_names(draft, baseline, values)}
    more = sorted(varied - {*axes, *SIDE_DIMENSIONS})
    return (*axes, *more, *(name for name in SIDE_DIMENSIONS if name in varied))


def check_coordinates(cases: Sequence[Case]) -> None:
    """Two cases in one cell of the cube would overwrite each other: an internal error."""
    cells: dict[tuple[Json, ...], str] = {}
    for case in cases:
        other = cells.setdefault(tuple(case.axes.values()), case.id)
        if other != case.id:
            raise XcfgError(f"cases {other} and {case.id} have the same coordinates", where="planner")
