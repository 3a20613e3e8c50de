"""What a detector may look at: the judged tokens of both sides, and what is known beside them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from attrs import field, frozen


@frozen(kw_only=True, eq=False)
class Rows:
    """One row a sequence, as one pair of ranks scored it. Columns are (R,) int64; None where nobody recorded them.

    ``length`` counts the row's tokens in the flat arrays of :class:`Observed`, at least 1. ``response_length`` counts
    masked tokens too. ``padding`` is the number of columns left of the row where the training side padded it;
    ``batch`` the number of the training side's pass that the row was in. ``step`` is the training step.
    """

    length: np.ndarray
    prompt_length: np.ndarray | None = None
    response_length: np.ndarray | None = None
    rollout_rank: np.ndarray | None = None
    train_rank: np.ndarray | None = None
    padding: np.ndarray | None = None
    batch: np.ndarray | None = None
    step: np.ndarray | None = None


@frozen(kw_only=True)
class Stated:
    """What one side says of its logprobs; None and empty where it does not.

    ``mode`` is ``raw_logprobs`` or ``processed_logprobs``. ``stored`` is the dtype the logprobs were kept in.
    """

    dtype: str = ""
    stored: str = ""
    mode: str = ""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None


@frozen(kw_only=True, eq=False)
class Top:
    """The K likeliest tokens at each place: ``token`` (N, K) int64 and ``logprob`` (N, K) float64.

    A place with fewer has token -1 and logprob NaN at the end.
    """

    token: np.ndarray
    logprob: np.ndarray


@frozen(kw_only=True, eq=False)
class Side:
    """One side's numbers at the N judged tokens: ``logprob`` (N,) float64, natural log, finite.

    ``lse`` (N,) float64 is the log-sum-exp of the logits; it and ``top`` are None where they were not recorded.
    """

    logprob: np.ndarray
    lse: np.ndarray | None = None
    top: Top | None = None
    stated: Stated = field(factory=Stated)


@frozen(kw_only=True, eq=False, slots=False)
class Observed:
    """The judged tokens: rows one after the other, each in ascending order of position.

    ``position`` (N,) int64 counts from 0 in the response, ``token`` (N,) int64 is the selected token.
    """

    rows: Rows
    position: np.ndarray
    token: np.ndarray
    rollout: Side
    training: Side

    @cached_property
    def d(self) -> np.ndarray:
        """(N,) float64 training minus rollout, nats."""
        difference: np.ndarray = self.training.logprob - self.rollout.logprob
        return difference

    @cached_property
    def starts(self) -> np.ndarray:
        """(R,) int64 places of the rows' first tokens."""
        starts: np.ndarray = np.cumsum(self.rows.length) - self.rows.length
        return starts

    @cached_property
    def row(self) -> np.ndarray:
        """(N,) int64 the row of each token."""
        rows: np.ndarray = np.repeat(np.arange(len(self.rows.length)), self.rows.length)
        return rows
