"""The shape of a cube and of its chunks: what is known before the first case is looked at."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from xcfg.cube.axis import Axis
from xcfg.cube.schema import CELL_BLOCK


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


@frozen(kw_only=True, slots=False, eq=False)
class Geometry:
    """Axes, metrics and chunks.

    ``chunk`` is the chunk shape along the axes, ``case_chunk`` that along ``case``, ``record_chunk`` that of the
    evidence and ``axis_chunk`` that of requested, materialized and observed along ``axis``: all fixed at creation.
    ``extensions`` holds the number of cases before each later enlargement of the plan: token data of an enlargement
    starts at a chunk boundary and so rewrites nothing.
    """

    axes: tuple[Axis, ...]
    chunk: tuple[int, ...]
    coordinate_chunks: tuple[int, ...]
    case_chunk: int
    record_chunk: int
    axis_chunk: int
    metrics: tuple[str, ...]
    metric_chunk: int
    extensions: tuple[int, ...] = ()

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Axis names in order."""
        return tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(axis.values) for axis in self.axes)
