"""How much the executed cases say of an alignment that passes, with and without the assumption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xcfg.analyzer.search.lattice import Lattice, Point
from xcfg.analyzer.search.order import key, preferred
from xcfg.analyzer.search.outcome import Verdict
from xcfg.analyzer.search.problem import Options, Word
from xcfg.analyzer.search.proof import next_part, smaller
from xcfg.analyzer.search.record import Record


def contradictions(record: Record) -> Iterator[tuple[Point, Point]]:
    """Pairs of a passing point and a failing one that aligns the same and more."""
    failing = record.having(Verdict.FAIL)
    for point in record.having(Verdict.PASS):
        yield from ((point, other) for other in failing if point & ~other == 0)


def excluding(record: Record, options: Options) -> Sequence[Point]:
    """The failing points whose parts the stated assumption excludes; none without one, or where it is contradicted."""
    if not options.monotone or next(contradictions(record), None) is not None:
        return ()
    return record.having(Verdict.FAIL)


def settled(lattice: Lattice, record: Record, point: Point, failing: Sequence[Point]) -> Word:
    """The strongest word that holds for a passing point; ``failing`` excludes its parts.

    A set that broke or is open leaves a gap. One that is unsettled or cannot be built does not pass and leaves none.
    """
    family, rank = lattice.knobs(point), key(lattice, point)
    gaps = [other for other in record.having(Verdict.UNKNOWN) if not covered(other, failing)]
    below = [lattice.knobs(other) for other in (*gaps, *record.having(Verdict.PASS))]
    if any(other & ~family == 0 and other != family for other in below):
        return Word.SUFFICIENT
    if next_part(lattice, record, point, failing) is not None:
        return Word.SUFFICIENT
    if any(key(lattice, other) < rank for other in (*gaps, *record.having(Verdict.PASS))):
        return Word.IRREDUCIBLE
    if first_open(lattice, record, point, failing) is not None:
        return Word.IRREDUCIBLE
    return Word.MINIMUM


def best(lattice: Lattice, record: Record, failing: Sequence[Point]) -> Point | None:
    """The smallest passing point at the best liked values; of equals one whose parts are settled."""
    ranked = {point: preferred(lattice, point) for point in record.having(Verdict.PASS)}
    least = min(ranked.values(), default=None)
    equals = sorted(point for point, rank in ranked.items() if rank == least)
    if len(equals) < 2:
        return equals[0] if equals else None
    return min(equals, key=lambda point: (settled(lattice, record, point, failing) is Word.SUFFICIENT, point))


def first_open(lattice: Lattice, record: Record, point: Point, failing: Sequence[Point]) -> Point | None:
    """A smaller set than ``point`` that is neither judged nor excluded, broken ones included."""
    unjudged = (None, Verdict.UNKNOWN)
    return next((other for other in smaller(lattice, point, failing) if record.verdict(other) in unjudged), None)


def covered(point: Point, failing: Sequence[Point]) -> bool:
    """Whether a failing point aligns the same and more."""
    return any(point & ~other == 0 for other in failing)
