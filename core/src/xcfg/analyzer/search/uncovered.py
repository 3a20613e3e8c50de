"""Sets that no executed failure excludes, smallest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xcfg.analyzer.search.lattice import Lattice, Point, bits


def uncovered(lattice: Lattice, universe: Point, most: int, failing: Sequence[Point]) -> Iterator[Point]:
    """The sets of 1 to ``most`` literals of ``universe`` that are part of no point of ``failing``, by size.

    Without ``failing`` these are all sets. With it, a set has to leave each failing point, so only literals outside
    one that covers what is chosen so far are tried: the tree of R. Reiter's hitting sets (1987,
    https://doi.org/10.1016/0004-3702(87)90062-2), deepened step by step.
    """
    for size in range(1, most + 1):
        deeper = False
        for point in _sets(lattice, 0, universe, size, failing):
            deeper = True
            if not any(point & ~other == 0 for other in failing):
                yield point
        if not deeper:
            return


def _sets(lattice: Lattice, chosen: Point, rest: Point, left: int, failing: Sequence[Point]) -> Iterator[Point]:
    """Every set of ``left`` more literals that may be uncovered, once each."""
    if left == 0:
        yield chosen
        return
    covers = (rest & ~point for point in failing if chosen & ~point == 0)
    ways = min(covers, key=lambda outside: (outside.bit_count(), outside), default=rest)
    for literal in bits(ways):
        rest &= ~literal
        yield from _sets(lattice, chosen | literal, rest & ~lattice.family[literal], left - 1, failing)
