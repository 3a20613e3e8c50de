"""The next case that a claim lacks: of the parts of a passing set, then of all smaller sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from xcfg.analyzer.search.lattice import Lattice, Point, bits
from xcfg.analyzer.search.narrow import narrow_around
from xcfg.analyzer.search.order import key
from xcfg.analyzer.search.outcome import Verdict
from xcfg.analyzer.search.record import Record
from xcfg.analyzer.search.uncovered import uncovered

COMPARED = 64
"""Open cases among which the one that is cheapest now is taken."""


def parts(lattice: Lattice, point: Point, failing: Sequence[Point]) -> Iterator[Point]:
    """Alignments of proper subsets of a point's knobs, at any candidates, that ``failing`` does not exclude."""
    return uncovered(lattice, lattice.knobs(point), point.bit_count() - 1, failing)


def smaller(lattice: Lattice, point: Point, failing: Sequence[Point]) -> Iterator[Point]:
    """Alignments of smaller sets of knobs, production left out, that ``failing`` does not exclude. Some come twice."""
    scope, size, burden = key(lattice, point)
    knobs = lattice.problem.knobs
    for narrower in sorted({knob.semantic_scope for knob in knobs if knob.semantic_scope < scope}):
        yield from uncovered(lattice, lattice.within_scope(narrower), len(knobs), failing)
    universe = lattice.within_scope(scope)
    yield from uncovered(lattice, universe, size - 1, failing)
    if len({key(lattice, literal)[2] for literal in bits(universe)}) > 1:
        for other in uncovered(lattice, universe, size, failing):
            if other.bit_count() == size and key(lattice, other)[2] < burden:
                yield other


def leave_one_out(point: Point) -> Iterator[Point]:
    """The point without each of its literals in turn."""
    return (point & ~literal for literal in bits(point))


def next_part(lattice: Lattice, record: Record, point: Point, failing: Sequence[Point]) -> Point | None:
    """A proper part of ``point`` that is neither executed nor excluded; leaving out one knob is always executed."""
    if failing:
        found = _cheapest(record, (part for part in leave_one_out(point) if part and record.open(part)))
        if found is not None:
            return found
    return _cheapest(record, (part for part in parts(lattice, point, failing) if record.open(part)))


def next_smaller(lattice: Lattice, record: Record, point: Point, failing: Sequence[Point]) -> Point | None:
    """A case that settles a smaller set than ``point``, or several; None where all are settled."""
    missing = (other for other in smaller(lattice, point, failing) if record.open(other))
    if not failing:
        return _cheapest(record, missing)
    first = next(missing, None)
    return None if first is None else _larger(lattice, record, point, first)


def _larger(lattice: Lattice, record: Record, point: Point, missing: Point) -> Point:
    """An open case whose failure would exclude ``missing`` and as much as possible beside it.

    Everything of no wider scope than ``point``, less one member of every set known to pass; where that passes too, a
    further such set is narrowed down in it first. Where sets that pass are many (more than two choices for each knob
    of ``point``), little can be excluded at once, and ``missing`` itself is next.
    """
    passing = _minimal(record.having(Verdict.PASS))
    if len(passing) > 2 ** point.bit_count():
        return missing
    for whole in passing:
        part = narrow_around(whole, lattice, record, whole & point)
        if part is not None:
            return part
    around = lattice.references[0] & lattice.within_scope(key(lattice, point)[0])
    around = around & ~lattice.knobs(missing) | missing
    around &= ~_one_of_each(passing, missing)
    return around if record.open(around) else missing


def _one_of_each(passing: Sequence[Point], missing: Point) -> Point:
    """Members of passing sets, outside ``missing``, that leave none of the sets whole.

    Alternatives to each other rather than members of one set: when those are all left out, nothing replaces them.
    """
    out = 0
    for whole in passing:
        if whole & out == 0:
            together = [other for other in passing if other & out]
            ranked = [(_holding(together, bit), -_holding(passing, bit), bit) for bit in bits(whole & ~missing)]
            out |= min(ranked)[-1]
    return out


def _holding(points: Sequence[Point], literal: Point) -> int:
    return sum(literal & point != 0 for point in points)


def _minimal(points: Iterable[Point]) -> list[Point]:
    """The points that hold no other, smallest first."""
    found: list[Point] = []
    for point in sorted(points, key=lambda point: (point.bit_count(), point)):
        if not any(other & ~point == 0 for other in found):
            found.append(point)
    return found


def _cheapest(record: Record, points: Iterator[Point]) -> Point | None:
    """Of the first points one that builds no engine; else of the smallest of them the one that builds fewest."""
    compared = list(islice(points, COMPARED))
    if not compared:
        return None
    built = {point: record.constructions(point) for point in compared}
    return min(compared, key=lambda point: (built[point] > 0, point.bit_count(), built[point]))
