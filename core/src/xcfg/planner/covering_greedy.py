"""A first covering array: row by row, each the best of several grown from the pairs that are missing most."""

from __future__ import annotations

import random
from collections.abc import Sequence

from xcfg.planner.forbidden import Forbidden, bits

_TRIES = 12
_SWEEPS = 2


def greedy_rows(required: Sequence[int], forbidden: Forbidden, chance: random.Random) -> list[list[int]]:
    """Rows that cover every pair of ``required`` (as in :class:`xcfg.planner.coverage.Coverage`).

    Each required pair must have an allowed row, or the last loop would not end.
    """
    factor = [index for index, domain in enumerate(forbidden.domains) for _ in bits(domain)]
    missing = list(required)
    rows: list[list[int]] = []
    while any(missing):
        ranked = sorted((level for level, mask in enumerate(missing) if mask), key=lambda level: _rank(missing, level))
        starts = [ranked[index % min(4, len(ranked))] for index in range(_TRIES)]
        grown = [_Growth(missing, forbidden, factor).row(start, chance) for start in starts]
        row = max(grown, key=lambda item: sum((missing[level] & _mask(item)).bit_count() for level in item))
        for level in row:
            missing[level] &= ~_mask(row)
        rows.append(row)
    return rows


def _rank(missing: Sequence[int], level: int) -> tuple[int, int]:
    return -missing[level].bit_count(), level


def _mask(row: Sequence[int]) -> int:
    return sum(1 << level for level in row)


class _Growth:
    """One row, grown factor by factor around a missing pair and then revised."""

    def __init__(self, missing: Sequence[int], forbidden: Forbidden, factor: Sequence[int]) -> None:
        self.missing = missing
        self.forbidden = forbidden
        self.factor = factor

    def row(self, start: int, chance: random.Random) -> list[int]:
        """A complete allowed row that holds ``start`` and covers at least one missing pair of it."""
        partner = chance.choice(list(bits(self.missing[start])))
        mask = 1 << start | 1 << partner
        fixed = {self.factor[start], self.factor[partner]}
        rest = [index for index in range(len(self.forbidden.domains)) if index not in fixed]
        chance.shuffle(rest)
        for index in rest:
            mask |= 1 << self._best(mask, self.forbidden.domains[index])
        for _ in range(_SWEEPS):
            for index in rest:
                domain = self.forbidden.domains[index]
                mask = mask & ~domain | 1 << self._best(mask & ~domain, domain, keep=mask & domain)
        return list(bits(mask))

    def _best(self, mask: int, domain: int, keep: int = 0) -> int:
        """The level of ``domain`` that covers most beside ``mask``, ``keep`` where none covers more."""

        def gain(level: int) -> tuple[int, bool, int]:
            open_pairs = self.missing[level]
            return (open_pairs & mask).bit_count(), bool(keep >> level & 1), open_pairs.bit_count()

        levels = bits(domain)
        if not self.forbidden.clauses:
            return max(levels, key=gain)
        ranked = sorted(levels, key=gain, reverse=True)
        return next(level for level in ranked if self.forbidden.completion(mask | 1 << level) is not None)
