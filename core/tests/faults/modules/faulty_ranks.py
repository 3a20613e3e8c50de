"""Scorers whose ranks are not what was launched."""

import os
import signal
import time

from attrs import evolve

from xcfg.testing.fakes import FakeScorer
from xcfg.testing.reshape import keep_rows


class RankTwice(FakeScorer):
    """Reports the rows of its rank a second time."""

    def score(self, batch, request):
        scored = super().score(batch, request)
        rows = [*range(scored.samples.rows)] * 2
        return evolve(scored, samples=keep_rows(scored.samples, rows))


class OutOfOrder(FakeScorer):
    """Reports its rows from the last to the first."""

    def score(self, batch, request):
        scored = super().score(batch, request)
        return evolve(scored, samples=keep_rows(scored.samples, reversed(range(scored.samples.rows))))


class Shared(FakeScorer):
    """Each rank scores its share of the rows."""

    def score(self, batch, request):
        scored = super().score(batch, request)
        rows = range(self._spec.rank, scored.samples.rows, self._spec.world_size)
        return evolve(scored, samples=keep_rows(scored.samples, rows))


class SharedLost(Shared):
    """Rank 1 is killed while it scores."""

    def score(self, batch, request):
        if self._spec.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2)
        return super().score(batch, request)


class SharedTwice(Shared):
    """Both ranks say that they are rank 0."""

    def open(self, spec):
        super().open(evolve(spec, rank=0))


class SharedLate(Shared):
    """Rank 0 is done long after rank 1."""

    def score(self, batch, request):
        time.sleep(1.0 - self._spec.rank)
        return super().score(batch, request)
