"""The pairs of levels that need a row: those that an allowed row can hold and no row holds yet."""

from __future__ import annotations

from collections.abc import Sequence

from xcfg.planner.forbidden import bits
from xcfg.planner.space import Part, Space


def open_pairs(space: Space, given: Sequence[Part]) -> list[int]:
    """For each level, by bit, the levels whose pair with it needs a row; ``given`` are rows, or parts, that exist."""
    domains = space.rules.domains
    every = [sum(domains) & ~domain for domain in domains for _ in bits(domain)]
    possible = _possible(space, every) if space.rules.clauses else every
    met = [space.bits(part) for part in given]
    return [mask & ~_beside(level, met) for level, mask in enumerate(possible)]


def missing_pairs(space: Space, given: Sequence[Part]) -> list[Part]:
    """The same, pair by pair."""
    factor = space.factor
    return [
        {factor[bit]: bit - space.starts[factor[bit]] for bit in (left, right)}
        for left, mask in enumerate(open_pairs(space, given))
        for right in bits(mask)
        if left < right
    ]


def _possible(space: Space, every: Sequence[int]) -> list[int]:
    """The pairs that some allowed row holds; each row found settles all of its pairs."""
    possible = [0] * len(every)
    for left, mask in enumerate(every):
        for right in bits(mask):
            if left < right and not possible[left] >> right & 1:
                row = space.rules.completion(1 << left | 1 << right) or 0
                for level in bits(row):
                    possible[level] |= row & every[level]
    return possible


def _beside(level: int, rows: Sequence[int]) -> int:
    """The levels that stand in a row with this one."""
    found = 0
    for row in rows:
        if row >> level & 1:
            found |= row
    return found
