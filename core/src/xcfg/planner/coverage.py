"""Which pairs of levels a set of rows covers, and how often, kept up to date while rows change.

Levels are bits (:mod:`xcfg.planner.forbidden`): what a change gains and loses is counted by two bit operations.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence


class Coverage:
    """``open[a]`` are the levels whose pair with ``a`` must be covered and is not; ``once[a]`` those in one row only.

    ``factor[a]`` is the factor of level ``a``; ``rows`` list one level a factor, ``masks`` the same as bits.
    """

    def __init__(self, factor: Sequence[int], required: Sequence[int], rows: Sequence[Sequence[int]]) -> None:
        """``required[a]`` are the levels whose pair with ``a`` must be covered, symmetrically."""
        self.factor = factor
        self.required = required
        self.open = list(required)
        self.once = [0] * len(required)
        self.left = sum(mask.bit_count() for mask in required) // 2
        self.rows: list[list[int]] = []
        self.masks: list[int] = []
        self._counts = [[0] * len(required) for _ in required]
        for row in rows:
            self.add(row)

    def add(self, row: Sequence[int]) -> None:
        """Append a row."""
        self.rows.append(list(row))
        self.masks.append(sum(1 << level for level in row))
        for left, right in itertools.combinations(row, 2):
            self._cover(left, right)

    def remove(self, index: int) -> None:
        """Take a row out."""
        row = self.rows.pop(index)
        del self.masks[index]
        for left, right in itertools.combinations(row, 2):
            self._uncover(left, right)

    def put(self, index: int, level: int) -> None:
        """Give a row another level of the level's factor."""
        row = self.rows[index]
        old = row[self.factor[level]]
        for other in row:
            if other != old:
                self._uncover(old, other)
                self._cover(level, other)
        row[self.factor[level]] = level
        self.masks[index] ^= (1 << old) | (1 << level)

    def needed(self, index: int) -> int:
        """How many pairs only this row covers."""
        mask = self.masks[index]
        return sum((self.once[level] & mask).bit_count() for level in self.rows[index]) // 2

    def _cover(self, left: int, right: int) -> None:
        if not self.required[left] >> right & 1:
            return
        count = self._counts[left][right] + 1
        self._counts[left][right] = self._counts[right][left] = count
        if count == 1:
            self.open[left] ^= 1 << right
            self.open[right] ^= 1 << left
            self.left -= 1
        if count <= 2:
            self.once[left] ^= 1 << right
            self.once[right] ^= 1 << left

    def _uncover(self, left: int, right: int) -> None:
        if not self.required[left] >> right & 1:
            return
        count = self._counts[left][right] - 1
        self._counts[left][right] = self._counts[right][left] = count
        if count == 0:
            self.open[left] ^= 1 << right
            self.open[right] ^= 1 << left
            self.left += 1
        if count <= 1:
            self.once[left] ^= 1 << right
            self.once[right] ^= 1 << left
