"""Fewer rows for the same pairs: take a row out, mend the others, and start again while that succeeds.

The mending is a local search in the manner of tabu search for covering arrays (K. J. Nurmela, "Upper bounds for
covering arrays by tabu search", Discrete Applied Mathematics 138, 2004, https://doi.org/10.1016/S0166-218X(03)00291-9):
a missing pair is put into the row where that costs least, and what it drove out may not come back at once.
"""

from __future__ import annotations

import random

from attrs import field, frozen

from xcfg.planner.coverage import Coverage
from xcfg.planner.forbidden import Forbidden, bits

_MOVES = 3000
_WORK = 500_000
"""Moves are fewer where there are many rows, each of which is looked at in every move."""


def fewer_rows(coverage: Coverage, forbidden: Forbidden, least: int, chance: random.Random) -> list[list[int]]:
    """The smallest set of rows found, not looking below ``least``; the rows of ``coverage`` cover every pair."""
    best = [list(row) for row in coverage.rows]
    while len(best) > max(least, 1):
        coverage.remove(min(range(len(coverage.rows)), key=coverage.needed))
        if not _Mending(coverage=coverage, forbidden=forbidden, chance=chance).succeeds():
            break
        best = [list(row) for row in coverage.rows]
    return best


@frozen(kw_only=True)
class _Mending:
    """``barred`` is the move until which a row may not take back a level, by (row, level)."""

    coverage: Coverage
    forbidden: Forbidden
    chance: random.Random
    barred: dict[tuple[int, int], int] = field(factory=dict)

    def succeeds(self) -> bool:
        """Whether every pair is covered again before the moves are spent."""
        coverage = self.coverage
        if not coverage.rows:
            return not coverage.left
        least_left = coverage.left
        for move in range(min(_MOVES, _WORK // len(coverage.rows))):
            if not coverage.left:
                return True
            left, right = self._missing()
            index = self._row(left, right, move, least_left)
            if index is None:
                continue
            for level in (left, right):
                self._put(index, level, move)
            least_left = min(least_left, coverage.left)
        return not coverage.left

    def _missing(self) -> tuple[int, int]:
        left = self.chance.choice([level for level, mask in enumerate(self.coverage.open) if mask])
        return left, self.chance.choice(list(bits(self.coverage.open[left])))

    def _put(self, index: int, level: int, move: int) -> None:
        old = self.coverage.rows[index][self.coverage.factor[level]]
        if old != level:
            self.barred[index, old] = move + 3 + self.chance.randrange(6 + len(self.coverage.rows) // 4)
            self.coverage.put(index, level)

    def _row(self, left: int, right: int, move: int, least_left: int) -> int | None:
        """The row in which the pair costs fewest others, by chance among equals; None where every row is barred."""
        found: list[int] = []
        least = 0
        for index, mask in enumerate(self.coverage.masks):
            cost, changed = self._cost(index, mask, left, right)
            if found and cost > least:
                continue
            barred = any(self.barred.get((index, level), 0) > move for level in (left, right) if not mask >> level & 1)
            if barred and self.coverage.left + cost >= least_left:
                continue
            if not self.forbidden.allows(changed):
                continue
            found = [*found, index] if found and cost == least else [index]
            least = cost
        return self.chance.choice(found) if found else None

    def _cost(self, index: int, mask: int, left: int, right: int) -> tuple[int, int]:
        """Pairs lost less pairs won by putting a missing pair into a row, and the row with it."""
        coverage, row = self.coverage, self.coverage.rows[index]
        old_left, old_right = row[coverage.factor[left]], row[coverage.factor[right]]
        if old_left == left:
            old, new = old_right, right
        elif old_right == right:
            old, new = old_left, left
        else:
            rest = mask & ~(1 << old_left | 1 << old_right)
            lost = (coverage.once[old_left] & mask).bit_count() + (coverage.once[old_right] & rest).bit_count()
            won = (coverage.open[left] & rest).bit_count() + (coverage.open[right] & rest).bit_count() + 1
            return lost - won, rest | 1 << left | 1 << right
        lost, won = (coverage.once[old] & mask).bit_count(), (coverage.open[new] & mask).bit_count()
        return lost - won, mask & ~(1 << old) | 1 << new
