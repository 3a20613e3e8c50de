"""Writes that survive a power cut and never leave half a file under its final name."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from xcfg.errors import EnvironmentFault
from xcfg.model.codec import dump_json
from xcfg.model.json import Json

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors that mean the data did not fit: device full, quota used up, file size limit."""


@contextmanager
def room(path: Path) -> Iterator[None]:
    """Turn "no space left" into an EnvironmentFault that names ``path``; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise EnvironmentFault(
            f"no space left to write: {os.strerror(error.errno)}",
            where=str(path),
            hint="free some space and run again; what is sealed is kept",
        ) from error


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet. Raises FileExistsError, and EnvironmentFault where there is no room."""
    with room(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """The name of a partial file in the same folder, for any name that ``path`` may have; it is gone afterwards.

    OSErrors name ``path``, whichever of both they came from.
    """
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        yield partial
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def replace(path: Path, data: bytes) -> None:
    """Write a file in one step: readers see the former content or the new one, also after a power cut.

    Errors name ``path``, whichever file they came from.
    """
    with beside(path) as partial:
        write_new(partial, data)
        partial.replace(path)
    sync_folder(path.parent)


def replace_changed(path: Path, data: bytes) -> None:
    """:func:`replace` where the file is absent or holds anything else."""
    try:
        if path.read_bytes() == data:
            return
    except FileNotFoundError:
        pass
    replace(path, data)


def encode(value: Json) -> bytes:
    """Strict JSON text of plain data or a model value, with a final newline. Raises ValueError on NaN."""
    return (dump_json(value) + "\n").encode()


def write_json(path: Path, value: Json) -> None:
    """Replace ``path`` by the JSON of ``value`` in one step."""
    replace(path, encode(value))


def make_folders(folder: Path) -> None:
    """Create ``folder`` with its parents, durably."""
    missing = [item for item in (folder, *folder.parents) if not item.exists()]
    with room(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for item in missing:
        sync_folder(item.parent)
