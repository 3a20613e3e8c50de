"""Where every case of a plan lies in the cube: axes, cells, case order and chunk shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import frozen

from xcfg.cube.axis import Axis, coordinate_dtype, value_key
from xcfg.cube.schema import CELL_BLOCK, RESERVED
from xcfg.errors import InvalidInput
from xcfg.model.json import Json
from xcfg.model.plan import Plan
from xcfg.model.result import METRIC_NAMES


class LayoutChanged(InvalidInput):
    """The plan needs a cube of another shape; only ``rebuild`` can make it."""


def cell_chunk(shape: Sequence[int]) -> tuple[int, ...]:
    """The largest block of whole trailing axes with at most 1,000 cells; 1 along the axes before it.

    Axes are taken whole, so that a value added to one starts a new chunk. An axis of more than 1,000 values is cut.
    """
    chunk = [1] * len(shape)
    cells = 1
    for index in reversed(range(len(shape))):
        if cells * shape[index] > CELL_BLOCK:
            if cells == 1:
                chunk[index] = CELL_BLOCK
            break
        chunk[index] = shape[index]
        cells *= shape[index]
    return tuple(chunk)


@frozen(kw_only=True, slots=False)
class Layout:
    """The cube's geometry.

    ``chunk`` is the chunk shape along the axes and ``case_chunk`` that along ``case``, both fixed at creation.
    ``cases``, ``cells``, ``names`` and ``changed`` run in parallel: id, index in the cube, name, and knobs that differ
    from the baseline. ``extensions`` holds the number of cases before each later enlargement of the plan: token data of
    an enlargement starts at a chunk boundary and so rewrites nothing.
    """

    axes: tuple[Axis, ...]
    chunk: tuple[int, ...]
    coordinate_chunks: tuple[int, ...]
    case_chunk: int
    metrics: tuple[str, ...]
    metric_chunk: int
    cases: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    changed: tuple[tuple[str, ...], ...]
    extensions: tuple[int, ...] = ()

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Axis names in order."""
        return tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(axis.values) for axis in self.axes)

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
        try:
            axes = tuple(axis.extended(_values(plan, axis.name)) for axis in self.axes)
        except ValueError as error:
            raise LayoutChanged(str(error), hint="rebuild the cube") from error
        cells = _cells(plan, axes)
        for case, cell in cells.items():
            if case in self.index and self.cells[self.index[case]] != cell:
                raise LayoutChanged(f"case {case} lies in another cell of the plan than of the cube", hint="rebuild it")
        added = [case for case in cells if case not in self.index]
        cases = (*self.cases, *added)
        names, changed = _described(
            plan, cases, dict(zip(self.cases, zip(self.names, self.changed, strict=True), strict=True))
        )
        layout = Layout(
            axes=axes,
            chunk=self.chunk,
            coordinate_chunks=self.coordinate_chunks,
            case_chunk=self.case_chunk,
            metrics=(*self.metrics, *(name for name in METRIC_NAMES if name not in self.metrics)),
            metric_chunk=self.metric_chunk,
            cases=cases,
            cells=(*self.cells, *(cells[case] for case in added)),
            names=names,
            changed=changed,
            extensions=(*self.extensions, len(self.cases)) if added else self.extensions,
        )
        _refuse_shared_cells(layout)
        return layout

    def covered_by(self, plan: Plan) -> bool:
        """Whether every axis, value and case of this layout is still in the plan."""
        if plan.dimensions != self.dimensions or not set(self.cases) <= {case.id for case in plan.cases}:
            return False
        planned = {axis.name: {value_key(value) for value in _values(plan, axis.name)} for axis in self.axes}
        return all(set(axis.keys) <= planned[axis.name] for axis in self.axes)


def fresh_layout(plan: Plan) -> Layout:
    """The layout of a new cube: values and cases in the order in which the plan first has them.

    Raises InvalidInput where an axis has a reserved name or two cases share a cell; call it before anything is run.
    """
    reserved = [name for name in plan.dimensions if name in RESERVED or "/" in name]
    if reserved:
        raise InvalidInput(f"the cube cannot have an axis named {_listed(reserved)}", where="axes")
    axes = []
    for name in plan.dimensions:
        values = _values(plan, name)
        axes.append(Axis(name=name, dtype=coordinate_dtype(values), values=values))
    cells = _cells(plan, axes)
    shape = tuple(len(axis.values) for axis in axes)
    names, changed = _described(plan, tuple(cells), {})
    layout = Layout(
        axes=tuple(axes),
        chunk=cell_chunk([max(1, size) for size in shape]),
        coordinate_chunks=tuple(max(1, size) for size in shape),
        case_chunk=max(1, min(CELL_BLOCK, len(cells))),
        metrics=METRIC_NAMES,
        metric_chunk=len(METRIC_NAMES),
        cases=tuple(cells),
        cells=tuple(cells.values()),
        names=names,
        changed=changed,
    )
    _refuse_shared_cells(layout)
    return layout


def _values(plan: Plan, name: str) -> tuple[Json, ...]:
    found: dict[str, Json] = {}
    for case in plan.cases:
        value = case.axes.get(name)
        found.setdefault(value_key(value), value)
    return tuple(found.values())


def _cells(plan: Plan, axes: Sequence[Axis]) -> dict[str, tuple[int, ...]]:
    positions = [{key: index for index, key in enumerate(axis.keys)} for axis in axes]
    return {
        case.id: tuple(
            position[value_key(case.axes.get(axis.name))] for axis, position in zip(axes, positions, strict=True)
        )
        for case in plan.cases
    }


def _described(
    plan: Plan, cases: Sequence[str], former: Mapping[str, tuple[str, tuple[str, ...]]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Names and changed knobs of ``cases``, as the plan has them now or, for cases it no longer has, as they were."""
    known = {**former, **{case.id: (case.name, case.changed) for case in plan.cases}}
    return tuple(known[case][0] for case in cases), tuple(known[case][1] for case in cases)


def _refuse_shared_cells(layout: Layout) -> None:
    owners: dict[tuple[int, ...], str] = {}
    for case, cell in zip(layout.cases, layout.cells, strict=True):
        if cell in owners:
            raise InvalidInput(
                f"cases {owners[cell]} and {case} have the same value on every axis and would share one cell",
                hint="make the knob in which they differ an axis",
            )
        owners[cell] = case


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
