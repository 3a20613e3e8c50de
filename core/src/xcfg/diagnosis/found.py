"""What a detector hands on: a candidate with the nats it wins and what it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from xcfg.diagnosis.observed import Observed, Rows, Side, Top
from xcfg.diagnosis.view import NOISE, View
from xcfg.model.json import Json

LEAST_NATS = 25.0
"""Fewer nats than this, after the parameters are paid for, are chance: noise alone reaches it once in e^25 draws."""


@frozen(kw_only=True, eq=False)
class Found:
    """``gain`` in nats. ``left`` (N,) is the d that remains where a formula holds, else None; ``inside`` (N,) bool
    are the tokens that a region takes out. One of both is given. ``certain`` values stand whatever else drifts;
    a ``rough`` fit leaves drift of its own.
    """

    kind: str
    gain: float
    evidence: Mapping[str, Json] = field(factory=dict)
    left: np.ndarray | None = None
    inside: np.ndarray | None = None
    confidence: str = "high"
    certain: bool = False
    rough: bool = False
    notes: tuple[str, ...] = ()

    def explained(self, view: View) -> float:
        """The share of the drift above the floor that goes away."""
        if self.left is not None:
            return view.explained(self.left)
        return view.explained(np.where(self.tokens, np.minimum(view.size, NOISE * view.floor.scale), view.size))

    @property
    def tokens(self) -> np.ndarray:
        """``inside`` of a region. Raises ValueError for a formula, which has none."""
        if self.inside is None:
            raise ValueError(f"{self.kind} is a formula and no region")
        return self.inside

    def without(self, view: View) -> Observed:
        """The tokens as they would be without it; a region's tokens are left out."""
        observed = view.observed
        if self.inside is not None:
            return kept(observed, ~self.inside)
        training = evolve(observed.training, logprob=view.x + self.left, top=None, lse=None)
        return evolve(observed, training=training, rollout=evolve(observed.rollout, top=None, lse=None))


def kept(observed: Observed, keep: np.ndarray) -> Observed:
    """The tokens where ``keep`` (N,) is true, in the rows that still have one."""
    length = np.add.reduceat(keep.astype(np.int64), observed.starts) if len(observed.rows.length) else np.zeros(0, int)
    stays = length > 0
    rows: dict[str, Any] = {
        name: None if (column := getattr(observed.rows, name)) is None else column[stays]
        for name in Rows.__annotations__
    }
    return Observed(
        rows=Rows(**{**rows, "length": length[stays]}),
        position=observed.position[keep],
        token=observed.token[keep],
        rollout=_side(observed.rollout, keep),
        training=_side(observed.training, keep),
    )


def _side(side: Side, keep: np.ndarray) -> Side:
    top = None if side.top is None else Top(token=side.top.token[keep], logprob=side.top.logprob[keep])
    lse = None if side.lse is None else side.lse[keep]
    return evolve(side, logprob=side.logprob[keep], lse=lse, top=top)
