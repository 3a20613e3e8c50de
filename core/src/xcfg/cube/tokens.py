"""The ragged token arrays: only chunks that a changed case touches are read or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from attrs import frozen

from xcfg.cube.schema import FLAT_CHUNK, TOKEN_ARRAYS, TOKEN_FIELDS
from xcfg.cube.store import Array, Values, filled, put, read
from xcfg.model.outcome import PairedTokens
from xcfg.model.sample import ragged_index


@frozen(kw_only=True, eq=False)
class Spans:
    """First element and number of elements of each case, (cases,) int64 each, in case order."""

    starts: Values
    counts: Values

    def padded(self, cases: int) -> Spans:
        """The spans of ``cases`` cases: none for those that these spans do not know."""
        more = np.zeros(cases - len(self.starts), dtype=np.int64)
        return Spans(starts=np.append(self.starts, more), counts=np.append(self.counts, more))

    def chunks(self, cases: Values) -> Values:
        """The chunks that hold an element of ``cases``, in order."""
        held = cases[self.counts[cases] > 0]
        first = self.starts[held] // FLAT_CHUNK
        number = (self.starts[held] + self.counts[held] - 1) // FLAT_CHUNK - first + 1
        return np.unique(ragged_index(first, number))

    def within(self, low: int, high: int) -> Values:
        """The cases with an element in ``[low, high)``, in order."""
        return np.flatnonzero((self.counts > 0) & (self.starts < high) & (self.starts + self.counts > low))


def write_tokens(
    arrays: Mapping[str, Array],
    spans: Spans,
    former: Mapping[str, Array],
    former_spans: Spans,
    new: Mapping[int, PairedTokens | None],
) -> None:
    """Bring the token arrays to ``spans``. ``new`` holds the tokens of written cases, others come from ``former``.

    ``former`` is the cube as it was, in another folder than ``arrays``: cases that move are read from there.
    """
    old = former_spans.padded(len(spans.starts))
    moved = (spans.starts != old.starts) | (spans.counts != old.counts)
    moved[list(new)] = True
    touched = np.flatnonzero(moved)
    for chunk in np.union1d(spans.chunks(touched), old.chunks(touched)).tolist():
        low, high = chunk * FLAT_CHUNK, min((chunk + 1) * FLAT_CHUNK, arrays["token_id"].shape[0])
        if low < high:
            _write_chunk(arrays, spans, former, old, new, low, high)


def _write_chunk(
    arrays: Mapping[str, Array],
    spans: Spans,
    former: Mapping[str, Array],
    old: Spans,
    new: Mapping[int, PairedTokens | None],
    low: int,
    high: int,
) -> None:
    held = list(_pieces(spans, old, new, low, high))
    for spec in TOKEN_ARRAYS:
        values = filled((high - low,), spec)
        for case, source, target in held:
            tokens = new.get(case)
            if tokens is None:
                values[target] = read(former[spec.name], (source,))
            else:
                values[target] = getattr(tokens, TOKEN_FIELDS[spec.name])[source]
        put(arrays[spec.name], (slice(low, high),), values)


def _pieces(
    spans: Spans, old: Spans, new: Mapping[int, PairedTokens | None], low: int, high: int
) -> Iterator[tuple[int, slice, slice]]:
    """(case, elements of its source, elements of the chunk); kept cases that lie side by side are one piece."""
    kept: tuple[int, int, int, int] | None = None  # case, former minus present place, first and last element
    for case in spans.within(low, high).tolist():
        start, count = int(spans.starts[case]), int(spans.counts[case])
        first, last = max(low, start), min(high, start + count)
        if case in new:
            yield case, slice(first - start, last - start), slice(first - low, last - low)
            continue
        shift = int(old.starts[case]) - start
        if kept is not None and kept[1] == shift and kept[3] == first:
            kept = (*kept[:3], last)
            continue
        if kept is not None:
            yield _piece(*kept, low)
        kept = (case, shift, first, last)
    if kept is not None:
        yield _piece(*kept, low)


def _piece(case: int, shift: int, first: int, last: int, low: int) -> tuple[int, slice, slice]:
    return case, slice(first + shift, last + shift), slice(first - low, last - low)
