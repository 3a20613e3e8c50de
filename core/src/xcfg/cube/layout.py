"""Where every case of a plan lies in the cube: axes, cells, case order and chunk shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from attrs import evolve, frozen

from xcfg.cube.axis import Axis, Places, coordinate_dtype, value_key, value_text
from xcfg.cube.geometry import Geometry, cell_chunk
from xcfg.cube.grid import Cell, Values
from xcfg.cube.schema import AXIS_CHUNK, CASE_BLOCK, CELL_BLOCK, RESERVED
from xcfg.errors import InvalidInput
from xcfg.model.json import Json
from xcfg.model.plan import Plan
from xcfg.model.result import METRIC_NAMES


class LayoutChanged(InvalidInput):
    """The plan needs a cube of another shape; only ``rebuild`` can make it."""


@frozen(kw_only=True, slots=False, eq=False)
class Layout(Geometry):
    """The cube's geometry with its cases.

    ``cases``, ``cells``, ``names`` and ``changed`` run in parallel: id, index in the cube (cases, axes) int64, name,
    and JSON list of the knobs that differ from the baseline.
    """

    cases: tuple[str, ...]
    cells: Values
    names: tuple[str, ...]
    changed: tuple[str, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each case id in ``cases``."""
        return {case: index for index, case in enumerate(self.cases)}

    def extended(self, plan: Plan) -> Layout:
        """The layout with the plan's new values, cases and metrics behind its own.

        Raises :class:`LayoutChanged` on other axes, a coordinate type that no longer fits or a case that has moved,
        and InvalidInput on two cases in one cell.
        """
        if plan.dimensions != self.dimensions:
            raise LayoutChanged(
                f"the cube has the axes {_listed(self.dimensions)} and the plan has {_listed(plan.dimensions)}",
                hint="another set of axes is another cube: rebuild it",
            )
        planned, added_values = _cells(plan, [axis.keys for axis in self.axes])
        try:
            axes = tuple(axis.extended(values) for axis, values in zip(self.axes, added_values, strict=True))
        except ValueError as error:
            raise LayoutChanged(str(error), hint="rebuild the cube") from error
        former = [tuple(cell) for cell in self.cells.tolist()]
        for case, cell in zip(self.cases, former, strict=True):
            if planned.get(case, cell) != cell:
                raise LayoutChanged(f"case {case} lies in another cell of the plan than of the cube", hint="rebuild it")
        added = [case for case in planned if case not in self.index]
        cases = (*self.cases, *added)
        known = dict(zip(self.cases, zip(self.names, self.changed, strict=True), strict=True))
        names, changed = _described(plan, cases, known)
        return evolve(
            self,
            axes=axes,
            metrics=(*self.metrics, *(name for name in METRIC_NAMES if name not in self.metrics)),
            extensions=(*self.extensions, len(self.cases)) if added else self.extensions,
            cases=cases,
            cells=_apart(cases, [*former, *(planned[case] for case in added)], len(axes)),
            names=names,
            changed=changed,
        )

    def covered_by(self, plan: Plan) -> bool:
        """Whether every axis, value and case of this layout is still in the plan."""
        if plan.dimensions != self.dimensions or not set(self.cases) <= {case.id for case in plan.cases}:
            return False
        _, planned = _cells(plan, [() for _ in self.axes])
        return all(
            set(axis.keys) <= {value_key(value) for value in values}
            for axis, values in zip(self.axes, planned, strict=True)
        )


def fresh_layout(plan: Plan) -> Layout:
    """The layout of a new cube: values and cases in the order in which the plan first has them.

    Raises InvalidInput where an axis has a reserved name or two cases share a cell; call it before anything is run.
    """
    reserved = [name for name in plan.dimensions if name in RESERVED or "/" in name]
    if reserved:
        raise InvalidInput(f"the cube cannot have an axis named {_listed(reserved)}", where="axes")
    cells, values = _cells(plan, [() for _ in plan.dimensions])
    axes = [
        Axis(name=name, dtype=coordinate_dtype(found), values=tuple(found))
        for name, found in zip(plan.dimensions, values, strict=True)
    ]
    shape = tuple(len(axis.values) for axis in axes)
    names, changed = _described(plan, tuple(cells), {})
    return Layout(
        axes=tuple(axes),
        chunk=cell_chunk([max(1, size) for size in shape]),
        coordinate_chunks=tuple(max(1, size) for size in shape),
        case_chunk=max(1, min(CASE_BLOCK, len(cells))),
        record_chunk=max(1, min(CELL_BLOCK, len(cells))),
        axis_chunk=AXIS_CHUNK,
        metrics=METRIC_NAMES,
        metric_chunk=len(METRIC_NAMES),
        cases=tuple(cells),
        cells=_apart(tuple(cells), list(cells.values()), len(axes)),
        names=names,
        changed=changed,
    )


def _cells(plan: Plan, keys: Sequence[Sequence[str]]) -> tuple[dict[str, Cell], list[list[Json]]]:
    """The cell of every case, and for each axis the values behind those of ``keys``, in the order they are met."""
    axes = [Places(known) for known in keys]
    places = [(name, axis.of) for name, axis in zip(plan.dimensions, axes, strict=True)]
    cells = {case.id: tuple([place(case.axes.get(name)) for name, place in places]) for case in plan.cases}
    return cells, [axis.values for axis in axes]


def _described(
    plan: Plan, cases: Iterable[str], former: Mapping[str, tuple[str, str]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and changed knobs of ``cases``, as the plan has them now or, for cases it no longer has, as they were."""
    texts: dict[tuple[str, ...], str] = {}
    known = dict(former)
    for case in plan.cases:
        if case.changed not in texts:
            texts[case.changed] = value_text(case.changed)
        known[case.id] = (case.name, texts[case.changed])
    return tuple(known[case][0] for case in cases), tuple(known[case][1] for case in cases)


def _apart(cases: Sequence[str], cells: Sequence[Cell], axes: int) -> Values:
    """The cells as an array. Raises InvalidInput where two cases lie in one."""
    if len(set(cells)) < len(cells):
        owners: dict[Cell, str] = {}
        for case, cell in zip(cases, cells, strict=True):
            if owners.setdefault(cell, case) != case:
                raise InvalidInput(
                    f"cases {owners[cell]} and {case} have the same value on every axis and would share one cell",
                    hint="make the knob in which they differ an axis",
                )
    return np.array(cells, dtype=np.int64).reshape(len(cells), axes)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
