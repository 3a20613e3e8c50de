"""Names, dtypes and shapes of a checkpoint's tensors, from the headers of its safetensors files; no weight is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from xcfg.errors import InvalidInput

_LONGEST = 100_000_000
"""Bytes a header may have; safetensors itself takes no more."""


@frozen(kw_only=True)
class TensorHeader:
    """``dtype`` is safetensors' name; ``start`` and ``end`` are bytes of ``file``."""

    dtype: str
    shape: tuple[int, ...]
    file: Path
    start: int
    end: int

    def content(self) -> bytes:
        """The tensor's bytes."""
        with self.file.open("rb") as handle:
            handle.seek(self.start)
            return handle.read(self.end - self.start)


def read_headers(folder: Path) -> Mapping[str, TensorHeader]:
    """Every tensor of the ``*.safetensors`` of ``folder``; empty where it has none.

    Raises InvalidInput for a file that is cut short or has no readable header, for a tensor that two files hold, and
    for one that the index names and no file holds.
    """
    found: dict[str, TensorHeader] = {}
    for file in sorted(folder.glob("*.safetensors")):
        for name, header in _file_headers(file).items():
            if name in found:
                raise InvalidInput(f"{name} is in {found[name].file.name} and in {file.name}", where=str(folder))
            found[name] = header
    for index in folder.glob("*.safetensors.index.json"):
        absent = sorted(_index_names(index) - found.keys())
        if absent:
            raise InvalidInput(f"no file holds {_some(absent)}, which the index names", where=str(index))
    return found


def _file_headers(file: Path) -> dict[str, TensorHeader]:
    size = file.stat().st_size
    with file.open("rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        if size < 8 or length > min(_LONGEST, size - 8):
            raise InvalidInput("the file is cut short or is no safetensors file", where=str(file))
        text = handle.read(length)
    try:
        document: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"the header is not readable: {error}", where=str(file)) from error
    document.pop("__metadata__", None)
    headers = {}
    for name, entry in document.items():
        start, end = (8 + length + place for place in entry["data_offsets"])
        if end > size:
            raise InvalidInput(f"{name} ends {end - size} bytes beyond the file, which is cut short", where=str(file))
        headers[name] = TensorHeader(dtype=entry["dtype"], shape=tuple(entry["shape"]), file=file, start=start, end=end)
    return headers


def _index_names(index: Path) -> set[str]:
    try:
        return set(json.loads(index.read_bytes())["weight_map"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"no readable index of tensors: {error!r}", where=str(index)) from error


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
