"""Rows that must not occur, and whether the levels chosen so far can still become a row that may.

Every level of every factor is one bit, so that a row, or a part of it, is one integer.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

Clause = tuple[tuple[int, int], ...]
"""(factor, mask of its levels) for each factor it speaks of: a row that meets every mask is forbidden."""


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@frozen(kw_only=True)
class Forbidden:
    """``domains`` is the mask of each factor's levels."""

    domains: tuple[int, ...]
    clauses: tuple[Clause, ...] = ()

    def allows(self, row: int) -> bool:
        """Whether a complete row breaks no clause."""
        return not any(all(row & mask for _, mask in clause) for clause in self.clauses)

    def completion(self, chosen: int) -> int | None:
        """A complete row with the levels ``chosen`` that no clause forbids; None where there is none.

        Exact: factors of open clauses are tried level by level, each choice carried on to what it forces.
        """
        return self._solve([chosen & domain or domain for domain in self.domains])

    def _solve(self, domains: list[int]) -> int | None:
        branch = self._propagate(domains)
        if branch is None:
            return None
        if branch < 0:
            return sum(domain & -domain for domain in domains)
        for level in bits(domains[branch]):
            found = self._solve([1 << level if factor == branch else mask for factor, mask in enumerate(domains)])
            if found is not None:
                return found
        return None

    def _propagate(self, domains: list[int]) -> int | None:
        """Take out of ``domains``, in place, what the clauses rule out.

        Returns a factor to branch on, -1 where every clause is settled, None where one is broken.
        """
        branch, changed = -1, True
        while changed:
            branch, changed = -1, False
            for clause in self.clauses:
                if any(not domains[factor] & mask for factor, mask in clause):
                    continue
                open_parts = [(factor, mask) for factor, mask in clause if domains[factor] & ~mask]
                if not open_parts:
                    return None
                factor, mask = open_parts[0]
                if len(open_parts) == 1:
                    domains[factor] &= ~mask
                    changed = True
                else:
                    branch = factor
        return branch
