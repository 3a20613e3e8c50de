"""The best end, beginning and stretch of each row: where the scores of its tokens add up to most."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from xcfg.diagnosis.view import View


@frozen(kw_only=True, eq=False)
class Spans:
    """One span a row, (R,) each: places ``first`` and ``after`` in the flat arrays, and the nats it wins."""

    first: np.ndarray
    after: np.ndarray
    nats: np.ndarray


@frozen(eq=False, slots=False)
class Sums:
    """Scores summed within rows: ``before`` (N,) without the token itself, ``upto`` with it, ``whole`` (R,)."""

    view: View
    before: np.ndarray
    upto: np.ndarray
    whole: np.ndarray

    @classmethod
    def of(cls, view: View) -> Sums:
        """Sum up."""
        total = np.cumsum(view.score)
        starts = view.observed.starts
        base = total[starts] - view.score[starts]
        upto = total - view.of_rows(base)
        return cls(view, upto - view.score, upto, upto[starts + view.observed.rows.length - 1])

    def tails(self) -> Spans:
        """From some token on to the row's end."""
        starts, lengths = self.view.observed.starts, self.view.observed.rows.length
        least = np.minimum.reduceat(self.before, starts)
        return Spans(first=self._place(self.before, least), after=starts + lengths, nats=self.whole - least)

    def heads(self) -> Spans:
        """From the row's first token up to some token."""
        starts = self.view.observed.starts
        most = np.maximum.reduceat(self.upto, starts)
        return Spans(first=starts.copy(), after=self._place(self.upto, most) + 1, nats=most)

    def stretches(self) -> Spans:
        """From some token up to another."""
        row, starts = self.view.observed.row, self.view.observed.starts
        apart = row * (2.0 * float(np.abs(self.before).max()) + 1.0)
        least = np.minimum.accumulate(self.before - apart)
        new = (self.before - apart) <= least
        latest = np.maximum.accumulate(np.where(new, np.arange(self.view.tokens), 0))
        won = self.upto - (least + apart)
        most = np.maximum.reduceat(won, starts)
        last = self._place(won, most)
        return Spans(first=latest[last], after=last + 1, nats=most)

    def _place(self, values: np.ndarray, extreme: np.ndarray) -> np.ndarray:
        """The first place of each row at which its extreme stands."""
        there = np.where(values == self.view.of_rows(extreme), np.arange(self.view.tokens), self.view.tokens)
        place: np.ndarray = np.minimum.reduceat(there, self.view.observed.starts)
        return place


def marks(view: View, spans: Spans, rows: np.ndarray) -> np.ndarray:
    """(N,) bool: the tokens of the spans of ``rows``."""
    edges = np.zeros(view.tokens + 1, dtype=np.int64)
    np.add.at(edges, spans.first[rows], 1)
    np.add.at(edges, spans.after[rows], -1)
    inside: np.ndarray = np.cumsum(edges[:-1]) > 0
    return inside


def places(view: View) -> dict[str, np.ndarray]:
    """(N,) positions counted in the response, and in prompt and response where the prompts' lengths are known."""
    position = view.observed.position
    found = {"response": position}
    if view.observed.rows.prompt_length is not None:
        found["prompt and response"] = position + view.of_rows(view.observed.rows.prompt_length)
    return found
