"""Which case comes next. A function of what was executed and nothing else, so that a search resumes where it was."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from attrs import frozen

from xcfg.analyzer.search.claim import Stopped
from xcfg.analyzer.search.lattice import Lattice, Point, bits
from xcfg.analyzer.search.narrow import narrow
from xcfg.analyzer.search.outcome import Verdict
from xcfg.analyzer.search.problem import Options, Word
from xcfg.analyzer.search.proof import leave_one_out, next_part, next_smaller
from xcfg.analyzer.search.record import Record
from xcfg.analyzer.search.uncovered import uncovered
from xcfg.analyzer.search.word import best, excluding, settled


class Purpose(StrEnum):
    """What a case is executed for."""

    PRODUCTION = "production"
    REFERENCE = "reference"
    FILL = "fill"
    NARROW = "narrow"
    PARTS = "parts"
    SMALLER = "smaller"
    ANY_PASS = "any_pass"


@frozen(kw_only=True)
class Question:
    """Cases to execute; more than one only where they cost nothing."""

    points: tuple[Point, ...]
    purpose: Purpose


def decide(lattice: Lattice, record: Record, options: Options) -> Question | Stopped:
    """The next question, or why there is none."""
    if record.open(0):
        return Question(points=(0,), purpose=Purpose.PRODUCTION)
    production = record.verdict(0)
    if production is Verdict.PASS:
        return Stopped.PRODUCTION_PASSES
    if production in (Verdict.UNSUPPORTED, Verdict.UNKNOWN):
        return Stopped.NO_VERDICT
    reference = _reference(lattice, record)
    if isinstance(reference, Stopped):
        return reference
    filled = tuple(record.products())
    if filled:
        return Question(points=filled, purpose=Purpose.FILL)
    if reference is not None:
        return Question(points=(reference,), purpose=Purpose.REFERENCE)
    failing = excluding(record, options)
    answer = best(lattice, record, failing)
    if answer is None:
        return _one(_any_pass(lattice, record), Purpose.ANY_PASS) or Stopped.NOTHING_PASSES
    return (
        _one(narrow(answer, lattice, record, assumed=bool(failing)), Purpose.NARROW)
        or _one(next_part(lattice, record, answer, failing), Purpose.PARTS)
        or _minimum(lattice, record, options, answer, failing)
        or (Stopped.PROVEN if _proven(lattice, record, options, answer, failing) else Stopped.UNJUDGED_PARTS)
    )


def _one(point: Point | None, purpose: Purpose) -> Question | None:
    return None if point is None else Question(points=(point,), purpose=purpose)


def _reference(lattice: Lattice, record: Record) -> Point | Stopped | None:
    """The reference to execute; None where one passes, or this machine can build none of them."""
    verdicts = set()
    for point in lattice.references:
        verdict = record.verdict(point)
        if verdict is None:
            return point
        if verdict is Verdict.PASS:
            return None
        verdicts.add(verdict)
    if Verdict.UNKNOWN in verdicts:
        return Stopped.NO_VERDICT
    return None if verdicts == {Verdict.UNSUPPORTED} else Stopped.REFERENCE_FAILS


def _any_pass(lattice: Lattice, record: Record) -> Point | None:
    """Without a reference: all but one knob, each literal alone, all that work alone together, then every set."""
    every = lattice.references[0]
    broken = (Verdict.UNSUPPORTED, Verdict.UNKNOWN)
    together = sum(literal for literal in bits(every) if record.verdict(literal) not in broken)
    for tried in (leave_one_out(every), bits(lattice.every), (together,)):
        found = next((point for point in tried if record.open(point)), None)
        if found is not None:
            return found
    sets = uncovered(lattice, lattice.every, len(lattice.problem.knobs), ())
    return next((point for point in sets if record.open(point)), None)


def _minimum(
    lattice: Lattice, record: Record, options: Options, answer: Point, failing: Sequence[Point]
) -> Question | None:
    if options.prove is not Word.MINIMUM:
        return None
    return _one(next_smaller(lattice, record, answer, failing), Purpose.SMALLER)


def _proven(lattice: Lattice, record: Record, options: Options, answer: Point, failing: Sequence[Point]) -> bool:
    word = settled(lattice, record, answer, failing)
    return word is Word.MINIMUM or word is options.prove
