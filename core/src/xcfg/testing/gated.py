"""Fake scorers for tests of executors: one that waits to be let go, one whose ranks share the rows."""

from __future__ import annotations

import os
import time
from pathlib import Path

from attrs import evolve

from xcfg.model.sample import TokenBatch
from xcfg.plugin.protocols import Scored, ScoreRequest, ScorerSpec
from xcfg.testing.fakes import FakeScorer
from xcfg.testing.reshape import keep_rows

GO = "go"
MARKS = "marks"
VARIABLES = {"XCFG_TESTING_GATE": "set by the launch"}
"""What a launch of :class:`Gated` sets for its processes; no machine has it by itself."""
_TICK_S = 0.02


class Gated(FakeScorer):
    """Scores its first side run at once.

    From the second on it waits until the file ``go`` is in the home folder, and leaves a mark there with its process
    number while it does.
    """

    _sides = 0

    def open(self, spec: ScorerSpec) -> None:
        """As the fake scorer does. Raises RuntimeError where a variable of the launch is not in force."""
        if absent := {name for name, value in VARIABLES.items() if os.environ.get(name) != value}:
            raise RuntimeError(f"the launch sets {', '.join(sorted(absent))}, which this process does not have")
        super().open(spec)

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """As the fake scorer does, once it may."""
        self._sides += 1
        home = Path(os.environ["HOME"])
        if self._sides > 1 and not (home / GO).exists():
            (home / MARKS / str(os.getpid())).touch()
            while not (home / GO).exists():
                time.sleep(_TICK_S)
        return super().score(batch, request)


class Shared(FakeScorer):
    """Ranks that share the rows between them; no collective is needed."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """The rank's own rows."""
        scored = super().score(batch, request)
        rows = range(self._spec.rank, scored.samples.rows, self._spec.world_size)
        return evolve(scored, samples=keep_rows(scored.samples, rows))


class OneRankFails(Shared):
    """Rank 1 raises while it scores, the others never return."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Raise RuntimeError or wait."""
        if self._spec.rank == 1:
            raise RuntimeError("rank one is out")
        while True:
            time.sleep(_TICK_S)
