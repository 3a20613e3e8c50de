"""What a caller hands over as logprobs, masks and token ids, as flat arrays with the lengths of the sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xcfg.comparator.arrays import ArrayPairs
from xcfg.errors import InvalidInput


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
    left, shape = _flat(rollout, "rollout")
    right, other = _flat(training, "training")
    if not np.array_equal(shape, other):
        raise InvalidInput(f"training has {_said(other)}, rollout {_said(shape)}", where="training")
    rows = _lengths(lengths, shape)
    return ArrayPairs(
        rollout=_floats(left, "rollout"),
        train=_floats(right, "training"),
        lengths=rows,
        mask=None if mask is None else _mask(_like(mask, "mask", shape)),
        tokens=None if token_ids is None else _ids(_like(token_ids, "token_ids", shape)),
        names=None if sequence_ids is None else _names(sequence_ids, len(rows)),
        rank=rank,
    )


def _flat(value: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The values one after the other, and the length of each row."""
    if isinstance(value, list | tuple) and value and not np.isscalar(value[0]):
        parts = [_view(item, name) for item in value]
        if wrong := next((part for part in parts if part.ndim != 1), None):
            raise InvalidInput(f"a list of arrays of shape (L,) is needed, one has shape {wrong.shape}", where=name)
        return np.concatenate(parts), np.array([len(part) for part in parts])
    array = _view(value, name)
    if array.ndim == 1:
        return array, np.array([len(array)])
    if array.ndim == 2:
        return array.reshape(-1), np.full(array.shape[0], array.shape[1])
    raise InvalidInput(f"shape {array.shape} is neither (N,) nor (B, L)", where=name)


def _view(value: Any, name: str) -> np.ndarray:
    """As numpy, without a copy where the object allows it."""
    try:
        if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
            return np.from_dlpack(value)
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        hint = "xcfg_torch.compare_logprobs takes tensors of any device and dtype"
        raise InvalidInput(f"numpy cannot view it: {error}", where=name, hint=hint) from error


def _like(value: Any, name: str, shape: np.ndarray) -> np.ndarray:
    array, own = _flat(value, name)
    if not np.array_equal(own, shape):
        raise InvalidInput(f"{name} has {_said(own)}, the logprobs {_said(shape)}", where=name)
    return array


def _lengths(lengths: Any, shape: np.ndarray) -> np.ndarray:
    if lengths is None:
        return shape
    rows = _ids(_view(lengths, "lengths"))
    if rows.ndim != 1 or len(shape) != 1 or (rows < 0).any() or int(rows.sum()) != int(shape.sum()):
        raise InvalidInput(
            f"lengths of sum {int(rows.sum())} do not split logprobs of {_said(shape)}",
            where="lengths",
            hint="lengths (B,) belong to ragged logprobs (N,)",
        )
    return rows


def _floats(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype not in (np.float16, np.float32, np.float64):
        raise InvalidInput(f"logprobs are float16, float32 or float64, not {array.dtype}", where=name)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _mask(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.bool_:
        return array
    if not np.isin(array, (0, 1)).all():
        raise InvalidInput("a mask holds true and false, or 1 and 0", where="mask")
    return array.astype(np.bool_)


def _ids(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "iu":
        raise InvalidInput(f"integers are needed, not {array.dtype}", where="token_ids")
    return array.astype(np.int64, copy=False)


def _names(names: Sequence[str], rows: int) -> tuple[str, ...]:
    if len(names) != rows or len(set(names)) != rows:
        raise InvalidInput(
            f"{rows} sequences need as many distinct sequence_ids, got {len(names)}", where="sequence_ids"
        )
    return tuple(names)


def _said(shape: np.ndarray) -> str:
    return f"{len(shape)} rows of {int(shape.sum())} tokens in all"
