"""safetensors: named tensors, one row with all of them, and the texts of ``__metadata__`` beside them.

Layout of the file: https://huggingface.co/docs/safetensors/index#format
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from safetensors import SafetensorError, safe_open

from xcfg.errors import ArtifactError
from xcfg.importers.formats.arrays import Arrays
from xcfg.importers.formats.pickled import refuse_pickle
from xcfg.importers.formats.strict_json import parse
from xcfg.model.recorded import Row

_PREFIX = 8
"""Bytes of the header's length, little-endian, before the header."""


def read(path: Path) -> Iterator[Row]:
    """One row whose fields are the tensors, each read when it is asked for, and the metadata.

    bfloat16, which numpy lacks, is widened to float32 without a change of value. A text of the metadata that is JSON
    is read as that. Raises ArtifactError.
    """
    try:
        tensors: Any = safe_open(path, framework="np")
    except SafetensorError as error:
        refuse_pickle(path)  # only now: a whole file may open with the same two bytes, the length of its header
        raise ArtifactError(f"not a safetensors file: {error}", where=path.name) from error
    header, start = _header(path)
    texts = cast("dict[str, str]", header.pop("__metadata__", {}))
    if twice := sorted(texts.keys() & header.keys()):
        raise ArtifactError(f"{twice[0]!r} is both a tensor and metadata", where=path.name)

    def load(name: str) -> object:
        if name in texts:
            return _metadata(texts[name], path.name)
        entry = cast("Mapping[str, object]", header[name])
        if entry["dtype"] == "BF16":
            return _bfloat16(path, entry, start)
        try:
            return tensors.get_tensor(name)
        except (SafetensorError, TypeError) as error:
            raise ArtifactError(
                f"tensor {name!r} of {entry['dtype']} cannot be read: {error}", where=path.name
            ) from error

    yield Row(place=path.name, fields=Arrays((*header, *texts), load))


def _header(path: Path) -> tuple[dict[str, object], int]:
    """What the file says of each tensor, and the byte at which the data starts."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(_PREFIX), "little")
        header = parse(stream.read(length), path.name)
    return cast("dict[str, object]", header), _PREFIX + length


def _bfloat16(path: Path, entry: Mapping[str, object], start: int) -> np.ndarray:
    """float32 whose upper 16 bits are the stored ones."""
    first, last = cast("tuple[int, int]", entry["data_offsets"])
    stored = np.fromfile(path, dtype="<u2", count=(last - first) // 2, offset=start + first)
    wide = (stored.astype(np.uint32) << 16).view(np.float32)
    return wide.reshape(cast("tuple[int, ...]", entry["shape"]))


def _metadata(text: str, name: str) -> object:
    """The JSON that the text is; a number stays text unless it is written as JSON writes it, so ``1e5`` is a name."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    if isinstance(found, list | dict):
        return parse(text, name)
    return found if json.dumps(found) == text else text
