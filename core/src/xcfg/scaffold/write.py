"""A distribution on disk: whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from xcfg.errors import InvalidInput


def write_distribution(folder: Path, files: Mapping[Path, str]) -> None:
    """Make ``folder`` with the files, by way of a folder beside it.

    Raises InvalidInput where something has that name or its place is not there, OSError where writing fails; nothing is
    left then.
    """
    if folder.exists() or folder.is_symlink():
        raise InvalidInput(f"{folder} is there already", where="--output", hint="choose another folder")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise InvalidInput(f"no folder {parent}", where="--output", hint="make it first")
    partial = parent / f".{secrets.token_hex(8)}.partial"
    try:
        for path, text in files.items():
            target = partial / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
