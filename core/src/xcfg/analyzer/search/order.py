"""Which of two sets of knobs is the smaller, and how many are smaller than a given one.

Smallest means lowest semantic scope (the widest of the set's knobs), then fewest knobs, then cost, then intrusion,
then maintenance, each of the three added up over the knobs. The values that knobs are set to make no difference.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from xcfg.analyzer.search.lattice import Burden, Lattice, Point, bits

Key: TypeAlias = tuple[int, int, Burden]
"""Semantic scope, knobs, burden. The smaller key is the smaller set."""

NOTHING = -1
"""Scope of the empty set: below every other."""


def key(lattice: Lattice, point: Point) -> Key:
    """What ranks the set of knobs that a point aligns."""
    scope, cost, intrusion, maintenance = NOTHING, 0, 0, 0
    for bit in bits(point):
        at = bit.bit_length() - 1
        scope = max(scope, lattice.literals[at][0].semantic_scope)
        burden = lattice.burdens[at]
        cost, intrusion, maintenance = cost + burden[0], intrusion + burden[1], maintenance + burden[2]
    return scope, point.bit_count(), (cost, intrusion, maintenance)


def preferred(lattice: Lattice, point: Point) -> tuple[Key, int]:
    """The key, then candidates that are better liked."""
    return key(lattice, point), sum(lattice.literal(bit)[1] for bit in bits(point))


def count_smaller(lattice: Lattice, point: Point) -> int:
    """How many alignments, production left out, set a smaller set of knobs than ``point`` does."""
    scope, size, burden = key(lattice, point)
    narrower = 1
    ways: Counter[tuple[int, bool, Burden]] = Counter({(0, False, (0, 0, 0)): 1})
    for knob in lattice.problem.knobs:
        values = len(knob.candidates)
        if knob.semantic_scope < scope:
            narrower *= values + 1
        if knob.semantic_scope <= scope:
            own = lattice.burdens[[literal for literal, _ in lattice.literals].index(knob)]
            for (count, widest, others), number in list(ways.items()):
                if count < size:
                    total = (others[0] + own[0], others[1] + own[1], others[2] + own[2])
                    ways[count + 1, widest or knob.semantic_scope == scope, total] += number * values
    widest_sets = ((count, total, number) for (count, widest, total), number in ways.items() if widest)
    return narrower - 1 + sum(number for count, total, number in widest_sets if (count, total) < (size, burden))
