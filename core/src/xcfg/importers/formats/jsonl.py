"""JSONL: one object a line, plain or compressed with gzip; blank lines are passed over."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from xcfg.errors import ArtifactError
from xcfg.importers.formats.pickled import refuse_pickle
from xcfg.importers.formats.strict_json import parse
from xcfg.model.recorded import Row

_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_CUT = "the file ends inside this line: was it copied whole?"


def read(path: Path) -> Iterator[Row]:
    """The objects of ``path`` in turn, one line in memory at a time; lines count from 1. Raises ArtifactError."""
    refuse_pickle(path)
    number = 0
    try:
        with _opened(path) as stream:
            for number, line in enumerate(stream, 1):
                body = line.removeprefix(_BOM) if number == 1 else line
                if body.strip(_SPACE):
                    yield _row(body, path.name, number)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ArtifactError(f"not a whole gzip file: {error}", where=f"{path.name} line {number + 1}") from error


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb")


def _row(line: bytes, name: str, number: int) -> Row:
    found = parse(line.rstrip(_SPACE), name, line=number, hint="" if line.endswith(b"\n") else _CUT)
    place = f"{name} line {number}"
    if not isinstance(found, dict):
        hint = "a file that is one JSON array ends in .json" if isinstance(found, list) else ""
        raise ArtifactError("the line is not a JSON object", where=place, hint=hint)
    return Row(place=place, fields=found)
