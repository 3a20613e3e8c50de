"""Rows of levels and their bits: every level of every factor has a place of its own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from xcfg.planner.forbidden import Forbidden, bits

Row = tuple[int, ...]
"""The index of one level a factor."""
Part = Mapping[int, int]
"""Some of a row: factor to level."""
Combination = Mapping[int, Iterable[int]]
"""Factor to levels; what is forbidden is any row with one of the levels of each."""


@frozen(kw_only=True)
class Space:
    """Factors ``0 .. n - 1`` with levels ``0 .. size - 1`` and the rows that are forbidden among them."""

    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    rules: Forbidden

    @classmethod
    def of(cls, sizes: Sequence[int], forbidden: Iterable[Combination] = ()) -> Space:
        """Raises ValueError on a factor without levels."""
        if not all(sizes):
            raise ValueError("a factor without values")
        starts = tuple(itertools.accumulate(sizes, initial=0))[:-1]
        domains = tuple(((1 << size) - 1) << start for size, start in zip(sizes, starts, strict=True))

        def mask(factor: int, levels: Iterable[int]) -> int:
            return sum(1 << starts[factor] + level for level in set(levels))

        clauses = tuple(tuple((factor, mask(factor, levels)) for factor, levels in item.items()) for item in forbidden)
        return cls(sizes=tuple(sizes), starts=starts, rules=Forbidden(domains=domains, clauses=clauses))

    @property
    def factor(self) -> list[int]:
        """The factor of each bit."""
        return [index for index, size in enumerate(self.sizes) for _ in range(size)]

    def bits(self, part: Part) -> int:
        """Some of a row as bits."""
        return sum(1 << self.starts[factor] + level for factor, level in part.items())

    def row(self, mask: int) -> Row:
        """The complete row of some bits."""
        return tuple(bit - start for bit, start in zip(bits(mask), self.starts, strict=True))

    def any_row(self, part: Part, chance: random.Random) -> Row:
        """An allowed row with a part that some allowed row has, the rest by chance."""
        mask = self.bits(part)
        rest = [factor for factor in range(len(self.sizes)) if factor not in part]
        chance.shuffle(rest)
        for factor in rest:
            levels = [1 << bit for bit in bits(self.rules.domains[factor])]
            chance.shuffle(levels)
            mask |= next(bit for bit in levels if self.rules.completion(mask | bit) is not None)
        return self.row(mask)
