"""Cells grouped by the chunk that holds them, so that a chunk is read and written once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import frozen

Values = np.ndarray[Any, Any]
Cell = tuple[int, ...]


@frozen(kw_only=True, eq=False)
class Block:
    """One chunk of the axes: its region in the array and, for the cells wanted of it, their numbers and places.

    ``items`` (n,) are the positions of the cells among those that were given; ``inside`` indexes the chunk with them.
    """

    region: tuple[slice, ...]
    items: Values
    inside: tuple[Values, ...]

    def put(self, values: Values, found: Values) -> None:
        """Set the wanted cells in the chunk's ``values`` to ``found``, one entry a cell."""
        values[self.inside] = found if self.inside else found[0]  # a cube without axes is one cell


def blocks(cells: Values, shape: Sequence[int], chunk: Sequence[int]) -> Iterator[Block]:
    """The chunks that hold ``cells``, (n, axes) int64 indices in the cube, in grid order."""
    sizes = np.array(chunk, dtype=np.int64)
    corners, inside = cells // sizes, cells % sizes
    order = np.lexsort(corners.T[::-1]) if len(chunk) else np.arange(len(cells))
    edges = np.flatnonzero((corners[order[1:]] != corners[order[:-1]]).any(axis=1)) + 1
    for items in np.split(order, edges) if len(order) else ():
        region = tuple(
            slice(at * size, min((at + 1) * size, extent))
            for at, size, extent in zip(corners[items[0]].tolist(), chunk, shape, strict=True)
        )
        yield Block(region=region, items=items, inside=tuple(inside[items].T))
