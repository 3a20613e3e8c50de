"""The tokens that the detectors look at, measured once: drift in units of the floor, and how hot each token is."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from attrs import frozen

from xcfg.diagnosis.floor import Floor, uncertainty
from xcfg.diagnosis.likelihood import plain, spread
from xcfg.diagnosis.observed import Observed

HOT = 4.0
"""Drift of this many floors: noise of the floor's scale is beyond it at 3 tokens in 100."""
NOISE = 0.9
"""Mean abs(d) of noise, in floors."""
WIDEST = 1e4
SAMPLED = 20_000


@frozen(kw_only=True, eq=False, slots=False)
class View:
    """Observed tokens with their floor. Arrays are (N,), sums by row (R,)."""

    observed: Observed
    floor: Floor

    @property
    def tokens(self) -> int:
        """N."""
        return len(self.observed.position)

    @property
    def rows(self) -> int:
        """R."""
        return len(self.observed.rows.length)

    @property
    def x(self) -> np.ndarray:
        """Rollout logprobs."""
        return self.observed.rollout.logprob

    @property
    def y(self) -> np.ndarray:
        """Training logprobs."""
        return self.observed.training.logprob

    @property
    def d(self) -> np.ndarray:
        """Training minus rollout."""
        return self.observed.d

    @cached_property
    def size(self) -> np.ndarray:
        """abs(d)."""
        size: np.ndarray = np.abs(self.d)
        return size

    @cached_property
    def z(self) -> np.ndarray:
        """abs(d) in floors."""
        z: np.ndarray = self.size / self.floor.scale
        return z

    @cached_property
    def hot(self) -> np.ndarray:
        """Beyond ``HOT`` floors, bool."""
        hot: np.ndarray = self.z > HOT
        return hot

    @cached_property
    def uncertain(self) -> np.ndarray:
        """abs(logp) of the surer side."""
        return uncertainty(self.observed)

    @cached_property
    def plain(self) -> float:
        """The cost of all tokens as noise."""
        return plain(self.z)

    @cached_property
    def excess(self) -> float:
        """Summed abs(d) above what noise of the floor makes, nats."""
        return float(max(self.size.sum() - NOISE * self.floor.scale.sum(), 0.0))

    @cached_property
    def width(self) -> float:
        """The scale of hot tokens, in floors."""
        hot = self.z[self.hot]
        return float(np.clip(spread(hot), HOT, WIDEST)) if len(hot) else HOT

    @cached_property
    def score(self) -> np.ndarray:
        """Nats for each token to be in a drifting region rather than outside.

        A region's token drifts with a probability that depends on its abs(logp): sure tokens hardly show a fault.
        """
        shows = self.shows
        with np.errstate(over="ignore"):
            cold = np.log1p(np.square(self.z) / 3.0)
            warm = np.log1p(np.square(self.z / self.width) / 3.0)
        ratio = 2.0 * (cold - warm) - np.log(self.width)
        score: np.ndarray = np.logaddexp(np.log1p(-shows), np.log(shows) + ratio)
        return score

    @cached_property
    def classes(self) -> np.ndarray:
        """The class of each token by its abs(logp), int; a class holds 64 tokens of the sample or more."""
        step = max(1, self.tokens // SAMPLED)
        keys = self.uncertain[::step]
        bins = int(np.clip(len(keys) // 64, 1, 8))
        edges = np.unique(np.quantile(keys, np.linspace(0.0, 1.0, bins + 1)[1:-1])) if bins > 1 else np.zeros(0)
        place: np.ndarray = np.searchsorted(edges, self.uncertain, side="right")
        return place

    @cached_property
    def shows(self) -> np.ndarray:
        """The probability that a token of a drifting region drifts by more than noise, by its abs(logp)."""
        place = self.classes
        count = np.bincount(place)
        rate = np.bincount(place, weights=self.hot) / np.maximum(count, 1)
        share = 0.9 * rate / max(float(rate.max()), 1e-9)
        shows: np.ndarray = np.clip(share, 0.02, 0.9)[place]
        return shows

    @cached_property
    def sums(self) -> np.ndarray:
        """The summed score of each row."""
        return self.by_row(self.score)

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """Sums by row."""
        sums: np.ndarray = np.add.reduceat(values, self.observed.starts) if self.rows else np.zeros(0)
        return sums

    def of_rows(self, marks: np.ndarray) -> np.ndarray:
        """(N,) what is said of rows, at each of their tokens."""
        flat: np.ndarray = np.repeat(marks, self.observed.rows.length)
        return flat

    def explained(self, left: np.ndarray) -> float:
        """The share of the excess that is gone where ``left`` (N,) nats remain."""
        if self.excess <= 0:
            return 0.0
        kept = max(float(np.abs(left).sum()) - NOISE * float(self.floor.scale.sum()), 0.0)
        return float(np.clip(1.0 - kept / self.excess, 0.0, 1.0))

    @cached_property
    def sample(self) -> np.ndarray:
        """Places of at most about ``SAMPLED`` tokens, evenly spaced."""
        return np.arange(0, self.tokens, max(1, self.tokens // SAMPLED))
