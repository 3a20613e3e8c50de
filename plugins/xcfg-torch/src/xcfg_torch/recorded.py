"""Recorded logprobs in files of ``torch.save``: read without running what a pickle could run."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from xcfg.errors import ArtifactError
from xcfg.model.recorded import Row

_SAFELY = (
    "such a file can run code when it is opened; save with torch.save a dict, or a list of dicts, of tensors, numbers "
    "and text, without numpy arrays and objects of other classes"
)
_GLOBAL = re.compile(r"\bGLOBAL (\S+)")
_SCALARS = (int, float, str, type(None))


def read_pt(path: Path) -> Iterator[Row]:
    """A dict as one row, a list of dicts as a row each, counted from 0; dicts and lists inside them stay as they are.

    Tensors become numpy arrays, bfloat16 widened to float32 without a change of value, and a tensor without dimensions
    a number. Loaded with ``weights_only`` (https://docs.pytorch.org/docs/stable/notes/serialization.html), which
    refuses everything else. Raises ArtifactError.
    """
    found = _loaded(path)
    if isinstance(found, Mapping):
        yield _row(found, path.name)
    elif isinstance(found, list | tuple):
        for index, item in enumerate(found):
            yield _row(item, f"{path.name} row {index}")
    else:
        raise ArtifactError(f"holds {type(found).__name__}, not a dict or a list of dicts", where=path.name)


def _loaded(path: Path) -> Any:
    try:
        with _no_class_allowed():
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        foreign = _GLOBAL.search(str(error))
        reason = f"it needs {foreign[1]}" if foreign else "it was not written by torch.save"
        message = f"a pickle that torch.load refuses with weights_only: {reason}"
        raise ArtifactError(message, where=path.name, hint=_SAFELY) from error
    except (RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError) as error:
        # what torch.load raises for a file cut off or of another kind depends on the byte at which it stumbles
        reason = f"{type(error).__name__} {str(error).partition('. ')[0]}"
        raise ArtifactError(f"not a whole file of torch.save: {reason}", where=path.name) from error


@contextmanager
def _no_class_allowed() -> Iterator[None]:
    """Classes that other libraries allow ``weights_only`` for the whole process (Megatron core does) do not count."""
    allowed = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        yield
    finally:
        torch.serialization.add_safe_globals(allowed)


def _row(found: object, place: str) -> Row:
    if not isinstance(found, Mapping):
        raise ArtifactError(f"holds {type(found).__name__}, not a dict", where=place)
    if strange := [key for key in found if not isinstance(key, str)]:
        raise ArtifactError(f"has the key {strange[0]!r:.60}, not text", where=place)
    return Row(place, {key: _plain(value, place, key) for key, value in found.items()})


def _plain(value: object, place: str, name: str) -> object:
    """``value`` with every tensor in it as numpy."""
    if isinstance(value, torch.Tensor):
        return _array(value, place, name)
    if isinstance(value, Mapping):
        return {key: _plain(item, place, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple) and not all(isinstance(item, _SCALARS) for item in value):
        return [_plain(item, place, f"{name}[{index}]") for index, item in enumerate(value)]
    return value


def _array(tensor: torch.Tensor, place: str, name: str) -> object:
    """As numpy, which has neither bfloat16 nor 8-bit floats: float32 holds every value of both."""
    narrow = tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float32, torch.float64)
    try:
        array = (tensor.float() if narrow else tensor).detach().numpy()
    except (RuntimeError, TypeError) as error:  # sparse, quantized, without storage
        reason = str(error).partition(". ")[0]
        raise ArtifactError(f"{name} is no plain tensor: {reason}", where=place) from error
    return array if array.ndim else array.item()
