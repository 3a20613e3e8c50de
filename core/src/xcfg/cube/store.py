"""Arrays of the store: opened or created from their specification, resized, and written only where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import zarr
from zarr.codecs import ZstdCodec

from xcfg.cube.schema import ArraySpec
from xcfg.errors import ArtifactError
from xcfg.model.json import Json, thaw

Array = zarr.Array[Any]
Values = np.ndarray[Any, Any]

REBUILD = "rebuild it from the attempts: xcfg cube rebuild DIR"


def sorted_json(value: Json) -> Json:
    """Plain JSON with sorted keys: zarr stores attributes in the order given."""
    value = thaw(value)
    if isinstance(value, dict):
        return {key: sorted_json(value[key]) for key in sorted(value)}
    return [sorted_json(item) for item in value] if isinstance(value, list) else value


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The in-memory dtype of an :class:`ArraySpec` dtype."""
    return np.dtypes.StringDType() if name == "str" else np.dtype(name)


def filled(shape: Sequence[int], spec: ArraySpec) -> Values:
    """An array of the fill value."""
    return np.full(tuple(shape), spec.fill, dtype=numpy_dtype(spec.dtype))


def require(
    group: zarr.Group,
    spec: ArraySpec,
    *,
    dims: Sequence[str],
    shape: Sequence[int],
    chunk: Sequence[int],
    attributes: Mapping[str, Json] | None = None,
) -> Array:
    """The array of ``spec``, created or brought to ``shape``. An existing array keeps its chunk shape."""
    found = group.get(spec.name)
    wanted = sorted_json({"description": spec.description, **(spec.attributes or {}), **(attributes or {})})
    if isinstance(found, zarr.Array):
        _resize(found, tuple(shape), spec)
        if dict(found.attrs) != wanted:
            found.attrs.put(wanted)
        return found
    return group.create_array(
        spec.name,
        shape=tuple(shape),
        chunks=tuple(chunk),
        dtype=str if spec.dtype == "str" else spec.dtype,
        fill_value=spec.fill,
        dimension_names=list(dims),
        # chunks of an array side by side: a folder a dimension would be most of the cost of a commit
        chunk_key_encoding={"name": "default", "separator": "."},
        # the checksum turns a flipped bit into an error on reading instead of another number
        compressors=[ZstdCodec(level=1, checksum=True)],
        attributes=wanted,
    )


def _resize(array: Array, shape: tuple[int, ...], spec: ArraySpec) -> None:
    if array.shape == shape:
        return
    for axis, size in enumerate(shape):
        if size < array.shape[axis]:
            # a chunk that stays keeps what lies beyond the new edge: clear it, or the bytes would tell of it
            tail = tuple(
                slice(size, None) if other == axis else slice(0, min(extent, array.shape[other]))
                for other, extent in enumerate(shape)
            )
            array[tail] = spec.fill
    array.resize(shape)


def same(left: Values, right: Values) -> bool:
    """Bitwise-equal meaning: NaN equals NaN."""
    return left.shape == right.shape and bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))


def read(array: Array, region: tuple[slice, ...] | None = None) -> Values:
    """The stored values of a region, writable; all of them by default. Raises ArtifactError on a damaged chunk."""
    try:
        return np.require(array[... if region is None else region], requirements="W")
    except (RuntimeError, ValueError, TypeError) as error:
        raise ArtifactError(f"a chunk is damaged: {error}", where=str(array.store_path), hint=REBUILD) from error


def put(array: Array, region: tuple[slice, ...], values: Values, held: Values | None = None) -> None:
    """Write ``values`` unless the region holds them already; ``held`` is what it holds where that was read before."""
    if not same(read(array, region) if held is None else held, values):
        array[region] = values


def sync(array: Array, values: Values, held: Values | None = None) -> None:
    """Make the array hold ``values`` (of its shape), chunk by chunk, leaving equal chunks untouched.

    ``held`` is what it holds; without it the array is read.
    """
    held = read(array) if held is None else held
    for region in regions(array.shape, array.chunks):
        if not same(held[region], values[region]):
            array[region] = values[region]


def regions(shape: Sequence[int], chunk: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """The slices of each chunk of an array."""
    return product(
        *(
            [slice(at, min(at + size, extent)) for at in range(0, extent, size)]
            for extent, size in zip(shape, chunk, strict=True)
        )
    )
