"""Cells grouped by the chunk that holds them, so that a chunk is read and written once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

Cell = tuple[int, ...]


@frozen(kw_only=True)
class Block:
    """One chunk of the axes: its region in the array and, for the cells wanted of it, (item, index inside)."""

    region: tuple[slice, ...]
    members: tuple[tuple[int, Cell], ...]


def blocks(cells: Iterable[tuple[int, Cell]], shape: Sequence[int], chunk: Sequence[int]) -> Iterator[Block]:
    """The chunks that hold ``cells``, pairs of (item number, index in the cube), in grid order."""
    grouped: dict[Cell, list[tuple[int, Cell]]] = {}
    for item, cell in cells:
        corner = tuple(index // size for index, size in zip(cell, chunk, strict=True))
        inside = tuple(index % size for index, size in zip(cell, chunk, strict=True))
        grouped.setdefault(corner, []).append((item, inside))
    for corner in sorted(grouped):
        region = tuple(
            slice(at * size, min((at + 1) * size, extent))
            for at, size, extent in zip(corner, chunk, shape, strict=True)
        )
        yield Block(region=region, members=tuple(grouped[corner]))
