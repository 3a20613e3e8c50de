"""From executed cases to a claim."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from attrs import evolve

from xcfg.analyzer.ladder import Rung, rung
from xcfg.analyzer.search.claim import MONOTONE, Claim, Executions, Stopped, Untried
from xcfg.analyzer.search.lattice import Lattice, Point
from xcfg.analyzer.search.order import count_smaller, key, preferred
from xcfg.analyzer.search.outcome import Observed, Verdict
from xcfg.analyzer.search.problem import Alignment, Options, Word
from xcfg.analyzer.search.record import Record
from xcfg.analyzer.search.word import best, contradictions, excluding, first_open, settled

SHOWN = 8
"""Contradictions that a claim lists."""

REASONS = {
    Stopped.PROVEN: "every set that the claim depends on was judged",
    Stopped.PRODUCTION_PASSES: "production is within the contract: there is nothing to align",
    Stopped.REFERENCE_FAILS: "everything aligned still violates the contract: debug the base scoring path first, no "
    "other case means anything until that one passes",
    Stopped.NO_VERDICT: "production or the aligned reference gave no verdict: mend that case first",
    Stopped.NOTHING_PASSES: "no alignment that can be executed here passes",
    Stopped.UNJUDGED_PARTS: "sets that the claim depends on broke instead of giving a verdict: execute them again",
    Stopped.BUDGET: "the next case takes more engine constructions than are left: best answer so far",
    Stopped.UNFINISHED: "best answer so far: a further case would tell more",
}
"""The sentence of each way to stop."""


def conclude(lattice: Lattice, record: Record, options: Options, stopped: Stopped, executions: Executions) -> Claim:
    """The claim that what is known supports."""
    failing = excluding(record, options)
    answer = None if stopped is Stopped.REFERENCE_FAILS else best(lattice, record, failing)
    bare = Claim(
        stopped=stopped,
        reason=REASONS[stopped],
        rung=_rung(lattice, record, answer),
        proof=_proof(lattice, record, (0, *lattice.references)),
        unsettled=_named(lattice, record.having(Verdict.UNSETTLED)),
        unsupported=_named(lattice, record.having(Verdict.UNSUPPORTED)),
        unjudged=_named(lattice, record.having(Verdict.UNKNOWN)),
        contradictions=[_named(lattice, pair) for pair in islice(contradictions(record), SHOWN)],
        executions=executions,
    )
    if answer is None:
        return bare
    word = settled(lattice, record, answer, failing)
    assumed = word is not settled(lattice, record, answer, ())
    passing = sorted(record.having(Verdict.PASS), key=lambda point: (preferred(lattice, point), point))
    others = (point for point in passing if settled(lattice, record, point, failing) is not Word.SUFFICIENT)
    aligned = lattice.decode(answer)
    return evolve(
        bare,
        word=word,
        aligned=aligned,
        still_different=[knob.name for knob in lattice.problem.knobs if knob.name not in aligned],
        assumption=MONOTONE if assumed else "",
        minimal_sets=_named(lattice, tuple(dict.fromkeys((answer, *others)))),
        proof=_proof(lattice, record, _evidence(lattice, record, answer, word, failing if assumed else ())),
        untried=_untried(lattice, record, answer, failing),
    )


def _named(lattice: Lattice, points: Sequence[Point]) -> tuple[Alignment, ...]:
    return tuple(map(lattice.decode, points))


def _rung(lattice: Lattice, record: Record, answer: Point | None) -> Rung:
    knobs = lattice.problem.knobs
    references = [record.verdict(point) for point in lattice.references]
    failed = Verdict.PASS not in references and bool({Verdict.FAIL, Verdict.UNSETTLED} & set(references))
    runs = record.runs.get(0, [])
    return rung(
        production=runs[-1].status if runs else None,
        production_within=record.verdict(0) is Verdict.PASS,
        reference_within=True if Verdict.PASS in references else False if failed else None,
        answer=None if answer is None else lattice.decode(answer),
        knobs=[knob.name for knob in knobs],
        logical=[knob.name for knob in knobs if knob.logical],
    )


def _evidence(lattice: Lattice, record: Record, answer: Point, word: Word, failing: Sequence[Point]) -> list[Point]:
    """Production, the references, the answer and its parts, for a minimum all smaller sets; failing sets around."""
    family, rank = lattice.knobs(answer), key(lattice, answer)
    chosen = [0, *lattice.references, answer]
    for point in record.runs:
        part = lattice.knobs(point) & ~family == 0 and lattice.knobs(point) != family
        if part or (word is Word.MINIMUM and key(lattice, point) < rank):
            chosen.append(point)
    chosen += [point for point in failing if not any(point & ~other == 0 and point != other for other in failing)]
    return chosen


def _proof(lattice: Lattice, record: Record, points: Sequence[Point]) -> tuple[Observed, ...]:
    return tuple(
        Observed(aligned=lattice.decode(point), outcome=run)
        for point in dict.fromkeys(points)
        for run in record.runs.get(point, ())
    )


def _untried(lattice: Lattice, record: Record, answer: Point, failing: Sequence[Point]) -> Untried:
    rank = key(lattice, answer)
    unjudged = (None, Verdict.UNKNOWN)
    first = first_open(lattice, record, answer, failing)
    return Untried(
        smaller=count_smaller(lattice, answer),
        executed=sum(
            point != 0 and record.verdict(point) not in unjudged and key(lattice, point) < rank for point in record.runs
        ),
        first=None if first is None else lattice.decode(first),
    )
