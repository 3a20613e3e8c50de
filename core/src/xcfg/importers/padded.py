"""Batches of padded sequences, one sample at a time; only padding that the layout's own mask declares is taken away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

import numpy as np

from xcfg.errors import ArtifactError
from xcfg.model.recorded import Row


def samples(row: Row, key: str, names: Iterable[str]) -> Iterator[Row]:
    """One row a sample: the row itself where field ``key`` is one sequence, else item i of every field of a batch.

    ``key`` names a token field: a flat list or 1-D array is one sample (JSONL, Parquet), a matrix, an array of more
    axes or a list of lists is a batch of B (npz, safetensors, a torch file). ``names`` are the fields the importer
    reads; the others are left out. Of a batch, a field that is a number, text or null holds for every sample.

    Raises:
        ArtifactError: a field of a batch has another number of items than ``key``.
    """
    batch = row.fields.get(key)
    if not _is_batch(batch):
        yield row
        return
    size = len(batch)
    shared: dict[str, object] = {}
    columns: dict[str, Sequence[object] | np.ndarray] = {}
    for name in dict.fromkeys((key, *names)):
        if name not in row.fields:
            continue
        value = batch if name == key else row.fields[name]
        if not _is_column(value):
            shared[name] = value
        elif len(value) == size:
            columns[name] = value
        else:
            raise ArtifactError(f"{name} holds {len(value)} items for the {size} sequences of {key}", where=row.place)
    for at in range(size):
        item = {name: column[at] for name, column in columns.items()}
        yield Row(place=f"{row.place} sample {at}", fields=shared | item)


def refuse_unmasked(row: Row, key: str, mask: str) -> None:
    """Refuse a batch of padded arrays without the field ``mask`` that tells padding from tokens; lists need none.

    Raises:
        ArtifactError: field ``key`` is an array of two or more axes and the row has no ``mask``.
    """
    tokens = None if mask in row.fields else row.fields.get(key)
    if isinstance(tokens, np.ndarray) and tokens.ndim > 1:
        raise ArtifactError(
            f"{key} is an array of padded sequences without {mask}: nothing tells padding from tokens",
            where=row.place,
            hint=f"save {mask} of the same batch too",
        )


def kept(mask: np.ndarray, row: Row, name: str) -> slice:
    """Where the tokens of one padded sequence lie: ``mask`` (L,) bool is one run of True with padding around it.

    Raises:
        ArtifactError: tokens lie on both sides of a masked place, which no padding does.
    """
    tokens = np.flatnonzero(mask)
    if not tokens.size:
        return slice(0, 0)
    first, last = int(tokens[0]), int(tokens[-1])
    if tokens.size != last - first + 1:
        at = first + int(np.argmin(mask[first:]))
        raise ArtifactError(
            f"{name} is 0 at {at} between tokens: padding lies at the ends of a sequence only",
            where=row.place,
            hint="tokens that do not count, as those of a tool, belong in the mask of the response",
        )
    return slice(first, last + 1)


def cut(values: np.ndarray, keep: slice, width: int, row: Row, name: str) -> np.ndarray:
    """``values`` (width,) of a padded sequence without the padding.

    Raises:
        ArtifactError: ``values`` is not as wide as the padded tokens, so that the cut would fall elsewhere.
    """
    if values.shape != (width,):
        raise ArtifactError(f"{name} is {values.size} wide for {width} padded tokens", where=row.place)
    return values[keep]


def _is_batch(value: object) -> TypeGuard[Sequence[object] | np.ndarray]:
    if isinstance(value, np.ndarray):
        return value.ndim > 1
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], list | tuple | np.ndarray)


def _is_column(value: object) -> TypeGuard[Sequence[object] | np.ndarray]:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
