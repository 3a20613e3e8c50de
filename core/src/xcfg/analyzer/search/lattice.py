"""Alignments as sets of literals, a literal being one knob at one of its candidates; sets are bits of an integer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import lcm
from typing import TypeAlias

from attrs import frozen

from xcfg.analyzer.search.problem import AlignableKnob, Alignment, Problem
from xcfg.errors import InvalidInput
from xcfg.model.json import freeze
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Role

Point: TypeAlias = int
"""A set of literals, at most one of each knob. 0 is production. ``a & ~b == 0`` reads: a is part of b."""

Burden: TypeAlias = tuple[int, int, int]
"""Cost (in a unit that makes every knob's cost whole, so that sums are exact), intrusion, maintenance."""


def bits(point: Point) -> Iterator[Point]:
    """The literals of a set, lowest first."""
    while point:
        lowest = point & -point
        yield lowest
        point ^= lowest


@frozen(kw_only=True)
class Lattice:
    """The literals of a problem, lowest bit first to be put back to production: wide, unsuspected, dear knobs.

    ``literals`` gives knob and candidate of each bit; ``family`` all literals of the knob of a literal; ``sides`` the
    literals that are part of a side's configuration; ``engine`` those that take a new engine; ``burdens`` what each
    literal adds to the burden of a set. ``references`` align everything: every knob at its first candidate; then at
    its second, or last; and so on.
    """

    problem: Problem
    literals: tuple[tuple[AlignableKnob, int], ...]
    family: Mapping[Point, Point]
    sides: Mapping[Role, Point]
    engine: Point
    burdens: tuple[Burden, ...]
    references: tuple[Point, ...]

    @property
    def every(self) -> Point:
        """All literals."""
        return (1 << len(self.literals)) - 1

    def encode(self, aligned: Alignment) -> Point:
        """The point of an alignment. Raises InvalidInput for a knob or value that the problem does not have."""
        point = 0
        for name, value in aligned.items():
            wanted = freeze(value)
            for at, (knob, candidate) in enumerate(self.literals):
                if knob.name == name and knob.candidates[candidate] == wanted:
                    point |= 1 << at
                    break
            else:
                raise InvalidInput(f"the search has no knob {name} with the aligned value {value!r}", where=name)
        return point

    def decode(self, point: Point) -> Alignment:
        """The alignment of a point, in the order in which the problem lists its knobs."""
        chosen = {knob.name: knob.candidates[at] for knob, at in map(self.literal, bits(point))}
        aligned: Alignment = freeze(
            {knob.name: chosen[knob.name] for knob in self.problem.knobs if knob.name in chosen}
        )
        return aligned

    def literal(self, bit: Point) -> tuple[AlignableKnob, int]:
        """Knob and candidate index of one literal."""
        return self.literals[bit.bit_length() - 1]

    def knobs(self, point: Point) -> Point:
        """All literals of the knobs that a point aligns."""
        widened = 0
        for bit in bits(point):
            widened |= self.family[bit]
        return widened

    def within_scope(self, scope: int) -> Point:
        """The literals of knobs of at most this semantic scope."""
        return _mask(knob.semantic_scope <= scope for knob, _ in self.literals)

    def joined(self, rollout: Point, training: Point) -> Point | None:
        """The point that two side configurations form; None where they disagree on a knob that is part of both."""
        both = self.sides[Role.ROLLOUT] & self.sides[Role.TRAINING]
        return rollout | training if (rollout ^ training) & both == 0 else None


def lattice(problem: Problem) -> Lattice:
    """The lattice of a problem. Knobs that nothing tells apart keep the problem's order."""
    ordered = sorted(
        problem.knobs,
        key=lambda knob: (-knob.semantic_scope, knob.suspicion, -knob.cost, -knob.intrusion, -knob.maintenance),
    )
    literals = tuple((knob, at) for knob in ordered for at in range(len(knob.candidates)))
    unit = lcm(*(Fraction(knob.cost).denominator for knob in ordered))
    masks = {name: _mask(knob.name == name for knob, _ in literals) for name in (knob.name for knob in ordered)}
    return Lattice(
        problem=problem,
        literals=literals,
        family={1 << bit: masks[knob.name] for bit, (knob, _) in enumerate(literals)},
        sides={role: _mask(role in knob.sides for knob, _ in literals) for role in Role},
        engine=_mask(knob.lifecycle is not Lifecycle.REQUEST for knob, _ in literals),
        references=tuple(
            _mask(at == min(nth, len(knob.candidates) - 1) for knob, at in literals)
            for nth in range(max(len(knob.candidates) for knob in ordered))
        ),
        burdens=tuple((int(Fraction(knob.cost) * unit), knob.intrusion, knob.maintenance) for knob, _ in literals),
    )


def _mask(flags: Iterable[bool]) -> Point:
    return sum(1 << bit for bit, flag in enumerate(flags) if flag)
