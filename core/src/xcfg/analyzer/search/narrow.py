"""The next case on the way down from a set that passes: which of its knobs go back to production together."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from xcfg.analyzer.search.lattice import Lattice, Point, bits
from xcfg.analyzer.search.outcome import Verdict
from xcfg.analyzer.search.prior import clean, surprise
from xcfg.analyzer.search.record import Record
from xcfg.model.scorer import Role

GROUPS = 3
"""Disjoint groups that the posterior counts; its inclusion and exclusion doubles with each."""

SCORING = 0.05
"""A further pass of a standing engine, in engine constructions: half a second against eleven (vLLM on a CPU)."""

NEARLY = 0.995
"""Part of the best rate with which a case that aligns less is preferred: passing, it ends the descent sooner."""


@frozen(kw_only=True)
class Suspects:
    """What executed failures say of the members of a passing set, read as if fewer aligned knobs never helped.

    ``needed``: leaving one of these out failed. ``groups``: leaving one of these out altogether failed. ``rest``: the
    other members.
    """

    needed: Point
    groups: tuple[Point, ...]
    rest: Point


def suspects(start: Point, record: Record, causes: Point = 0) -> Suspects:
    """Sort the members of ``start`` by the failing cases; each says that what ``start`` has beyond it holds a cause.

    Members that are taken for ``causes`` count as needed.
    """
    beyond = {start & ~failing for failing in record.having(Verdict.FAIL, Verdict.UNSETTLED)} - {0}
    needed = causes | sum(group for group in beyond if group.bit_count() == 1 and not group & causes)
    groups: list[Point] = []
    taken = needed
    for group in sorted(beyond, key=lambda group: (group.bit_count(), group)):
        if group & taken == 0 and len(groups) < GROUPS:
            groups.append(group)
            taken |= group
    return Suspects(needed=needed, groups=tuple(groups), rest=start & ~taken)


def narrow(start: Point, lattice: Lattice, record: Record, *, assumed: bool) -> Point | None:
    """A part of ``start`` (which passes) to execute; None where the model expects no smaller part to pass.

    First the causes found so far, which the proof needs anyway and which end the descent where they pass: each by
    itself unless monotonicity is ``assumed``, then all together. Else the pool that tells most per construction.
    """
    known = suspects(start, record)
    if known.needed == start:
        return None
    for causes in [*([] if assumed else bits(known.needed)), known.needed]:
        if causes and record.open(causes):
            return causes
    return _most_telling(start, known, lattice, record)


def narrow_around(start: Point, lattice: Lattice, record: Record, causes: Point) -> Point | None:
    """A part of ``start`` that keeps the members taken for ``causes``; None where nothing more seems to be in it."""
    return _most_telling(start, suspects(start, record, causes), lattice, record)


def _most_telling(start: Point, known: Suspects, lattice: Lattice, record: Record) -> Point | None:
    for offsets in (False, True):
        found = _best(start, known, lattice, record, offsets)
        if found is not None:
            return found
    return None


def _best(start: Point, known: Suspects, lattice: Lattice, record: Record, offsets: bool) -> Point | None:
    """Of the open cases with most bits per construction, or nearly so, the one that aligns least.

    ``offsets`` also tries pools that do not begin at the front of the order: cases that cannot be built may lie there.
    """
    rated: list[tuple[float, int, Point]] = []
    sizes = tuple(group.bit_count() for group in known.groups)
    found, rest = known.needed.bit_count(), known.rest.bit_count()
    for at, group in enumerate(known.groups or (known.rest,)):
        groups = (*sizes[at : at + 1], *sizes[:at], *sizes[at + 1 :])
        for pool in _pools(group, lattice, offsets):
            target = start & ~pool
            if record.open(target):
                size = pool.bit_count()
                tells = surprise(clean(len(lattice.problem.knobs), found, groups, rest, size))
                if tells > 0.0:
                    rated.append((tells / (record.constructions(target) + SCORING), size, target))
    if not rated:
        return None
    enough = NEARLY * max(rate for rate, _, _ in rated)
    return max((size, rate, target) for rate, size, target in rated if rate >= enough)[-1]


def _pools(group: Point, lattice: Lattice, offsets: bool) -> Iterator[Point]:
    """Runs of a group's members in the lattice's order: of all, and of those that change one side or no engine only."""
    rollout, training = lattice.sides[Role.ROLLOUT], lattice.sides[Role.TRAINING]
    kinds = {group & kind for kind in (-1, ~training, ~rollout, ~lattice.engine)} - {0}
    kinds |= {kind & ~lattice.engine for kind in kinds} - {0}
    for kind in sorted(kinds):
        members = list(bits(kind))
        for first in range(len(members) if offsets else 1):
            pool = 0
            for member in members[first:]:
                pool |= member
                yield pool
