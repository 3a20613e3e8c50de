"""Field values of a row as typed arrays and scalars: nothing is repaired, and every refusal names row and field.

Values are plain Python (from JSON) or numpy (from arrays). Every function raises ArtifactError.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from xcfg.errors import ArtifactError
from xcfg.model.recorded import Row

_WHOLE = (int, np.integer)
_LARGEST = np.iinfo(np.int64).max
_REAL = (int, float, np.integer, np.floating)


def field(row: Row, name: str) -> object:
    """The value of field ``name``; a field that is absent or null is refused."""
    value = row.fields.get(name)
    if value is not None:
        return value
    if name in row.fields:
        raise ArtifactError(f"field {name!r} is null", where=row.place)
    near = difflib.get_close_matches(name, row.fields, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the row has {', '.join(row.fields) or 'no field'}"
    raise ArtifactError(f"field {name!r} is missing", where=row.place, hint=hint)


def integers(value: object, row: Row, name: str) -> np.ndarray:
    """(n,) int64 of a list or 1-D array of integers, of either sign."""
    items = _items(value, row, name)
    if isinstance(items, np.ndarray):
        if items.dtype.kind not in "iu":
            _refuse(row, f"{name} holds {items.dtype}, not integers")
        if items.dtype == np.uint64 and items.size and items.max() > _LARGEST:
            _refuse(row, f"{name} holds an integer beyond the range of int64")
        return items.astype(np.int64, copy=False)
    _only(items, _WHOLE, row, name, "an integer")
    try:
        return np.array(items, dtype=np.int64)
    except OverflowError:
        _refuse(row, f"{name} holds an integer beyond the range of int64")


def token_ids(value: object, row: Row, name: str) -> np.ndarray:
    """(n,) int64 token ids, none negative, of a list or 1-D array of integers."""
    ids = integers(value, row, name)
    if ids.size and ids.min() < 0:
        at = int(np.argmax(ids < 0))
        _refuse(row, f"{name}[{at}] is {ids[at]}, not a token id")
    return ids


def logprobs(value: object, row: Row, name: str) -> np.ndarray:
    """(n,) natural logs as stored: float32 of float16 and float32 arrays, else float64; null becomes NaN."""
    items = _items(value, row, name)
    if isinstance(items, np.ndarray):
        if items.dtype.kind not in "iuf" or items.dtype.itemsize > 8:
            _refuse(row, f"{name} holds {items.dtype}, not floating-point logprobs")
        narrow = items.dtype.kind == "f" and items.dtype.itemsize <= 4
        return items.astype(np.float32 if narrow else np.float64, copy=False)
    _only(items, (*_REAL, type(None)), row, name, "a number or null")
    try:
        return np.array(items, dtype=np.float64)  # None becomes NaN
    except OverflowError:
        _refuse(row, f"{name} holds an integer beyond the range of a float")


def mask(value: object, row: Row, name: str) -> np.ndarray:
    """(n,) bool of a list or 1-D array of booleans, or of numbers that are 0 or 1."""
    items = _items(value, row, name)
    if isinstance(items, np.ndarray):
        if items.dtype.kind not in "biuf":
            _refuse(row, f"{name} holds {items.dtype}, not booleans or 0 and 1")
        if items.dtype == np.bool_:
            return items
        strange = (items != 0) & (items != 1)
        at = int(np.argmax(strange)) if strange.any() else -1
    else:
        _only(items, (bool, np.bool_, *_REAL), row, name, "a boolean, 0 or 1")
        at = -1 if set(items) <= {0, 1} else next(at for at, item in enumerate(items) if item not in (0, 1))
    if at >= 0:
        _refuse(row, f"{name}[{at}] is {str(items[at])[:40]}, not a boolean, 0 or 1")
    return np.asarray(items, dtype=np.bool_)


def matrix(value: object, row: Row, name: str) -> np.ndarray:
    """(B, L) array of a padded layout: an array as it is, or equally long lists (bool, int64 or float64, null NaN)."""
    if isinstance(value, np.ndarray):
        if value.ndim != 2 or value.dtype.kind not in "biuf":
            _refuse(row, f"{name} is an array of {value.dtype} {list(value.shape)}, not a matrix of numbers")
        return value
    if not isinstance(value, list | tuple):
        _refuse(row, f"{name} is {_shown(value)}, not a matrix of numbers")
    rows = [_items(item, row, f"{name}[{at}]") for at, item in enumerate(value)]
    if len(lengths := {len(item) for item in rows}) > 1:
        _refuse(row, f"{name} has rows of {min(lengths)} to {max(lengths)} values, not a padded matrix")
    for at, items in enumerate(rows):
        _only(items, (bool, np.bool_, *_REAL, type(None)), row, f"{name}[{at}]", "a number or null")
    kinds = {type(item) for items in rows for item in items}
    whole = all(issubclass(kind, _WHOLE) and kind is not bool for kind in kinds)
    dtype = np.bool_ if kinds and kinds <= {bool, np.bool_} else np.int64 if kinds and whole else np.float64
    try:
        return np.array(rows, dtype=dtype).reshape(len(rows), max(lengths, default=0))
    except OverflowError:
        _refuse(row, f"{name} holds an integer beyond the range of {np.dtype(dtype)}")


def number(value: object, row: Row, name: str) -> float:
    """A real number, NaN and infinities included; a boolean, text or null is refused."""
    value = _item(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(row, f"{name} is {_shown(value)}, not a number")
    try:
        return float(value)
    except OverflowError:
        _refuse(row, f"{name} is an integer beyond the range of a float")


def integer(value: object, row: Row, name: str) -> int:
    """An integer; a boolean, a number with a decimal point, text or null is refused."""
    value = _item(value)
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(row, f"{name} is {_shown(value)}, not an integer")
    return value


def text(value: object, row: Row, name: str) -> str:
    """A string that can be written as UTF-8."""
    value = _item(value)
    if not isinstance(value, str):
        _refuse(row, f"{name} is {_shown(value)}, not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(row, f"{name} is {_shown(value)}, which holds half a character (a lone surrogate)")
    return str(value)


def _items(value: object, row: Row, name: str) -> list[object] | tuple[object, ...] | np.ndarray:
    """A list, or an array that is flat."""
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            _refuse(row, f"{name} is an array of {value.ndim} dimensions {list(value.shape)}, not a flat list")
        return value
    if not isinstance(value, list | tuple):
        _refuse(row, f"{name} is {_shown(value)}, not a list")
    return value


def _only(items: Iterable[object], kinds: tuple[type, ...], row: Row, name: str, expected: str) -> None:
    """Refuse the first item of another kind; a bool is no number unless ``kinds`` names it."""
    wrong = {
        kind for kind in set(map(type, items)) if not issubclass(kind, kinds) or (kind is bool and bool not in kinds)
    }
    if wrong:
        at, item = next((at, item) for at, item in enumerate(items) if type(item) in wrong)
        _refuse(row, f"{name}[{at}] is {_shown(item)}, not {expected}")


def _item(value: object) -> object:
    """A numpy scalar, or an array without dimensions, as the plain Python value."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    return value


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} {list(value.shape)}"
    return f"{type(value).__name__} {str(value)[:40]}"


def _refuse(row: Row, message: str) -> NoReturn:
    raise ArtifactError(message, where=row.place)
