"""The smallest passing alignments among executed cases, and which of them no other beats on cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, islice

from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled
from xcfg.model.knob import Knob

LISTED = 16
"""Cases still to be executed that a minimal set names."""


@frozen(kw_only=True)
class Executed:
    """A case by what it aligns.

    ``aligned`` are the knobs at aligned instead of production values; ``within`` whether the case is within the
    production contract (``within_baseline_row``; None: not judged). ``slowdown`` is its time relative to production's,
    ``memory`` its peak in bytes; None where not recorded.
    """

    case: str
    aligned: Mapping[str, Json] = field(factory=dict, converter=freeze)
    within: bool | None = None
    slowdown: float | None = None
    memory: int | None = None


@frozen(kw_only=True)
class MinimalSet:
    """A passing case of which no executed part passes.

    ``failing`` are the cases that align a part of it, at the same values, and fail. ``missing`` counts the parts
    without a verdict, of which ``to_execute`` lists the first. With none missing the set is irreducible.
    """

    case: Executed
    failing: tuple[str, ...] = field(default=(), converter=tupled)
    missing: int = 0
    to_execute: tuple[Mapping[str, Json], ...] = field(default=(), converter=freeze)

    @property
    def irreducible(self) -> bool:
        """Whether every part was judged; none passes."""
        return self.missing == 0


def minimal_sets(cases: Iterable[Executed], knobs: Mapping[str, Knob]) -> tuple[MinimalSet, ...]:
    """The passing cases without a passing part, smallest first.

    Smallest: lowest semantic scope (the widest knob's), fewest knobs, least slowdown where recorded, then intrusion
    and maintenance, added up. ``knobs`` are the descriptors by name. Of cases that align the same, one failure counts.
    """
    judged: dict[frozenset[tuple[str, Json]], Executed] = {}
    for case in cases:
        literals = _literals(case.aligned)
        if case.within is not None and (literals not in judged or judged[literals].within):
            judged[literals] = case
    passing = [case for case in judged.values() if case.within]
    names = [frozenset(case.aligned) for case in passing]
    minimal = [case for case, own in zip(passing, names, strict=True) if not any(other < own for other in names)]
    return tuple(_with_parts(case, judged) for case in sorted(minimal, key=lambda case: _rank(case, knobs)))


def pareto_front(cases: Sequence[Executed]) -> tuple[Executed, ...]:
    """The passing cases that no other passing one beats in knobs aligned, slowdown and memory; fewest knobs first.

    One case beats another that it equals or betters in all three and betters in one. Cases that lack a figure cannot
    be compared and are left out.
    """
    points = {
        case.case: (len(case.aligned), case.slowdown, case.memory)
        for case in cases
        if case.within and case.slowdown is not None and case.memory is not None
    }
    beaten = {
        name
        for name, point in points.items()
        for other in points.values()
        if other != point and all(left <= right for left, right in zip(other, point, strict=True))
    }
    front = [case for case in cases if case.case in points and case.case not in beaten]
    return tuple(sorted(front, key=lambda case: points[case.case]))


def _with_parts(case: Executed, judged: Mapping[frozenset[tuple[str, Json]], Executed]) -> MinimalSet:
    own = _literals(case.aligned)
    parts = {literals: part for literals, part in judged.items() if literals and literals < own}
    open_parts = (
        dict(chosen)
        for size in range(1, len(own))
        for chosen in combinations(case.aligned.items(), size)
        if _literals(dict(chosen)) not in parts
    )
    return MinimalSet(
        case=case,
        failing=[part.case for part in parts.values()],
        missing=max(2 ** len(own) - 2, 0) - len(parts),
        to_execute=tuple(islice(open_parts, LISTED)),
    )


def _literals(aligned: Mapping[str, Json]) -> frozenset[tuple[str, Json]]:
    return frozenset((name, _hashable(value)) for name, value in aligned.items())


def _hashable(value: Json) -> Json:
    if isinstance(value, Mapping):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _rank(case: Executed, knobs: Mapping[str, Knob]) -> tuple[int, int, float, int, int, tuple[str, ...]]:
    chosen = [knobs[name] for name in case.aligned]
    return (
        max((knob.semantic_scope for knob in chosen), default=-1),
        len(chosen),
        math.inf if case.slowdown is None else case.slowdown,
        sum(knob.intrusion for knob in chosen),
        sum(knob.maintenance for knob in chosen),
        tuple(case.aligned),
    )
