"""The ragged token arrays: only chunks that a changed case touches are read or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from xcfg.cube.schema import FLAT_CHUNK, TOKEN_ARRAYS, TOKEN_FIELDS
from xcfg.cube.store import Array, Values, filled, put, read
from xcfg.model.outcome import PairedTokens


@frozen(kw_only=True)
class Spans:
    """First element and number of elements of each case, in case order."""

    starts: tuple[int, ...]
    counts: tuple[int, ...]

    def of(self, case: int) -> tuple[int, int]:
        """Start and end of a case; (0, 0) for one that these spans do not know."""
        return (self.starts[case], self.starts[case] + self.counts[case]) if case < len(self.starts) else (0, 0)


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
    touched = [case for case in range(len(spans.starts)) if case in new or spans.of(case) != former_spans.of(case)]
    dirty = sorted({chunk for case in touched for chunk in (*_chunks(spans.of(case)), *_chunks(former_spans.of(case)))})
    for spec in TOKEN_ARRAYS:
        array = arrays[spec.name]
        for chunk in dirty:
            low, high = chunk * FLAT_CHUNK, min((chunk + 1) * FLAT_CHUNK, array.shape[0])
            if low >= high:
                continue
            values = filled((high - low,), spec)
            for case in _overlapping(spans, low, high):
                start, end = spans.of(case)
                first, last = max(low, start), min(high, end)
                piece = slice(first - start, last - start)
                values[first - low : last - low] = _piece(spec.name, case, piece, former, former_spans, new)
            put(array, (slice(low, high),), values)


def _piece(
    name: str,
    case: int,
    piece: slice,
    former: Mapping[str, Array],
    former_spans: Spans,
    new: Mapping[int, PairedTokens | None],
) -> Values:
    tokens = new.get(case)
    if tokens is not None:
        return np.asarray(getattr(tokens, TOKEN_FIELDS[name])[piece])
    start = former_spans.starts[case]
    return read(former[name], (slice(start + piece.start, start + piece.stop),))


def _chunks(span: tuple[int, int]) -> Sequence[int]:
    start, end = span
    return range(start // FLAT_CHUNK, -(-end // FLAT_CHUNK)) if end > start else ()


def _overlapping(spans: Spans, low: int, high: int) -> list[int]:
    return [
        case
        for case, (start, count) in enumerate(zip(spans.starts, spans.counts, strict=True))
        if count and start < high and start + count > low
    ]
