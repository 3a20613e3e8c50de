"""How partial results of one comparison meet: in one process, or from every rank of a process group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from xcfg.comparator.utf8 import decoded, encoded


class Exchange(Protocol):
    """Brings an array of every participant to every participant; each must make the same calls in the same order."""

    def gather(self, values: np.ndarray) -> Sequence[np.ndarray]:
        """The (n_w,) float64 arrays of all W participants, in rank order; their lengths may differ."""


def gather_texts(text: str, exchange: Exchange) -> list[str]:
    """The text of every participant, in rank order, through an exchange of numbers."""
    mine = np.frombuffer(encoded(text), dtype=np.uint8).astype(np.float64)
    return [decoded(bytes(part.astype(np.uint8))) for part in exchange.gather(mine)]


class _Alone:
    """The exchange of one process."""

    def gather(self, values: np.ndarray) -> Sequence[np.ndarray]:
        """The values themselves, the only participant's."""
        return [values]


ALONE: Exchange = _Alone()
