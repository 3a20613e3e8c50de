"""What a caller hands over as logprobs, masks and token ids, as flat arrays with the lengths of the sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product, starmap
from typing import Any

import numpy as np
from attrs import frozen

from xcfg.comparator.arrays import ArrayPairs
from xcfg.errors import InvalidInput

LOGPROBS = ("float16", "float32", "float64")


@frozen(kw_only=True, eq=False)
class Given:
    """One argument: its parts as they were handed over, their values one after the other, the length of each row."""

    parts: tuple[np.ndarray, ...]
    flat: np.ndarray
    shape: np.ndarray


def array_pairs(
    rollout: Any,
    training: Any,
    mask: Any,
    lengths: Any,
    token_ids: Any,
    sequence_ids: Sequence[str] | None,
    rank: int,
) -> ArrayPairs:
    """The pairs of :func:`xcfg.api.compare_logprobs`. Raises InvalidInput where shapes or dtypes do not fit."""
    left, right = _logprobs(rollout, "rollout"), _logprobs(training, "training")
    if not np.array_equal(left.shape, right.shape):
        raise InvalidInput(f"training has {_said(right.shape)}, rollout {_said(left.shape)}", where="training")
    rows = _lengths(lengths, left.shape)
    return ArrayPairs(
        rollout=left.flat,
        train=right.flat,
        lengths=rows,
        mask=None if mask is None else _mask(_like(mask, "mask", left.shape)),
        tokens=None if token_ids is None else _integers(_like(token_ids, "token_ids", left.shape), "token_ids"),
        names=None if sequence_ids is None else _names(sequence_ids, len(rows)),
        rank=rank,
        same_memory=bool(len(left.flat)) and (rollout is training or _overlap(left.parts, right.parts)),
    )


def _given(value: Any, name: str) -> Given:
    if isinstance(value, list | tuple) and not (value and np.isscalar(value[0])):
        parts = tuple(_view(item, name) for item in value)
        if wrong := [part.shape for part in parts if part.ndim != 1]:
            raise InvalidInput(f"a list of arrays of shape (L,) is needed, one has shape {wrong[0]}", where=name)
        filled = [part for part in parts if len(part)]  # an empty list has no dtype to speak of
        flat = np.concatenate(filled) if filled else np.zeros(0)
        return Given(parts=parts, flat=flat, shape=np.array([len(part) for part in parts], dtype=np.int64))
    array = _view(value, name)
    if array.ndim not in (1, 2):
        raise InvalidInput(f"shape {array.shape} is neither (N,) nor (B, L)", where=name)
    rows = array if array.ndim == 2 else array[np.newaxis]
    return Given(parts=(array,), flat=array.reshape(-1), shape=np.full(*rows.shape))


def _view(value: Any, name: str) -> np.ndarray:
    """As numpy, without a copy where the object allows it."""
    if isinstance(value, np.ndarray) and hasattr(value, "mask"):
        raise InvalidInput("a masked array is not taken", where=name, hint="give its data, and what is active as mask")
    try:
        if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
            return np.from_dlpack(value)
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        hint = "xcfg_torch.compare_logprobs takes tensors of any device and dtype"
        raise InvalidInput(f"numpy cannot view it: {error}", where=name, hint=hint) from error


def _logprobs(value: Any, name: str) -> Given:
    given = _given(value, name)
    if wrong := [part.dtype for part in given.parts if len(part) and part.dtype.name not in LOGPROBS]:
        raise InvalidInput(f"logprobs are float16, float32 or float64, not {wrong[0]}", where=name)
    return given


def _overlap(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> bool:
    """Whether a row of one side lies in the memory of the other. Asked of what was handed over: a copy hides it."""
    if len(left) == len(right):
        return any(map(np.shares_memory, left, right))
    return any(starmap(np.shares_memory, product(left, right)))


def _like(value: Any, name: str, shape: np.ndarray) -> np.ndarray:
    given = _given(value, name)
    if not np.array_equal(given.shape, shape):
        raise InvalidInput(f"{name} has {_said(given.shape)}, the logprobs {_said(shape)}", where=name)
    return given.flat


def _lengths(lengths: Any, shape: np.ndarray) -> np.ndarray:
    if lengths is None:
        return shape
    rows = _integers(_view(lengths, "lengths"), "lengths")
    if rows.ndim != 1 or len(shape) != 1 or (rows < 0).any() or int(rows.sum()) != int(shape.sum()):
        raise InvalidInput(
            f"lengths of sum {int(rows.sum())} do not split logprobs of {_said(shape)}",
            where="lengths",
            hint="lengths (B,) belong to ragged logprobs (N,)",
        )
    return rows


def _mask(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.bool_:
        return array
    if not np.isin(array, (0, 1)).all():
        raise InvalidInput("a mask holds true and false, or 1 and 0", where="mask")
    return array.astype(np.bool_)


def _integers(array: np.ndarray, name: str) -> np.ndarray:
    if array.size and array.dtype.kind not in ("i", "u"):
        raise InvalidInput(f"integers are needed, not {array.dtype}", where=name)
    return np.asarray(array, dtype=np.int64)


def _names(names: Sequence[str], rows: int) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInput(f"a list of texts is needed, not {names!r}", where="sequence_ids")
    given = list(names)
    if wrong := [name for name in given if not isinstance(name, str)]:
        raise InvalidInput(f"sequence ids are texts, one is {wrong[0]!r}", where="sequence_ids")
    again = next((name for name, count in Counter(given).items() if count > 1), None)
    if len(given) != rows or again is not None:
        raise InvalidInput(
            f"{rows} sequences need as many distinct sequence_ids, got {len(given)}",
            where="sequence_ids",
            hint="" if again is None else f"{str(again)!r} repeats: the samples of one prompt need an id each",
        )
    return tuple(str(name) for name in given)


def _said(shape: np.ndarray) -> str:
    return f"{len(shape)} rows of {int(shape.sum())} tokens in all"
