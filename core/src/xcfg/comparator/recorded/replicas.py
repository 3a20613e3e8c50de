"""Records of one sequence on several ranks of a side: replicas, which should be bitwise equal."""

from __future__ import annotations

import math

import numpy as np

from xcfg.comparator.ranks import replicas_disagree
from xcfg.comparator.recorded.identity import Held
from xcfg.model.json import Json
from xcfg.model.result import Finding


class Replicas:
    """Active logprobs of the replicas of one side against the lowest rank's."""

    def __init__(self, side: str) -> None:
        """None seen."""
        self._side = side
        self._replicated, self._disagreeing, self._compared, self._unequal = 0, 0, 0, 0
        self._largest = 0.0
        self._first: Json = None

    def add(self, held: list[Held]) -> None:
        """Take in every record of one sequence on this side, by rank."""
        self._replicated += len(held) > 1
        differed = False
        for other in held[1:]:
            differed |= self._differs(held[0], other)
        self._disagreeing += differed

    def finding(self) -> list[Finding]:
        """The finding, where a bit differed."""
        if not self._unequal:
            return []
        evidence = {
            "side": self._side,
            "sequences_replicated": self._replicated,
            "sequences_disagreeing": self._disagreeing,
            "tokens_compared": self._compared,
            "tokens_unequal": self._unequal,
            "max_abs_difference": self._largest if math.isfinite(self._largest) else None,
            "first": self._first,
        }
        return [replicas_disagree(self._side, evidence)]

    def _differs(self, origin: Held, other: Held) -> bool:
        with np.errstate(invalid="ignore"):
            mine, theirs = (held.arrays.logprobs.astype(np.float64) for held in (other, origin))
            apart = np.abs(mine - theirs)
        mask = origin.arrays.mask
        active = np.ones(len(mine), dtype=bool) if mask is None else mask
        self._compared += int(active.sum())
        unequal = np.flatnonzero(active & (mine.view(np.uint64) != theirs.view(np.uint64)))
        if not len(unequal):
            return False
        self._unequal += len(unequal)
        largest = float(np.max(apart[unequal]))
        self._largest = max(self._largest, largest) if math.isfinite(largest) else math.inf
        if self._first is None:
            at = int(unequal[0])
            self._first = {
                "sequence": origin.entry.name,
                "position": at,
                "ranks": [origin.entry.rank, other.entry.rank],
                "logprobs": [_json(float(theirs[at])), _json(float(mine[at]))],
            }
        return True


def _json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
