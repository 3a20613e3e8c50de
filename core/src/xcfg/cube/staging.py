"""A commit happens in a sibling folder that then takes the cube's place; a kill at any moment leaves a readable cube.

The sibling shares unchanged files with the cube through hard links. That is safe because zarr replaces a file and never
writes into one, and it keeps older chunks untouched. The place is taken with two renames; between them the former cube
is the sibling ``.NAME.former``, which readers look for and the next commit puts back.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xcfg.errors import EnvironmentFault

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _sibling(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}")


def locate(path: Path) -> Path:
    """Where the cube is now: ``path``, or the former cube where a commit was killed between its two renames."""
    former = _sibling(path, "former")
    return former if not path.exists() and former.exists() else path


def remnants(path: Path) -> tuple[Path, ...]:
    """What a killed commit left beside the cube and :func:`recover` removes."""
    kinds = ("discarded", "staging", *(("former",) if path.exists() else ()))
    return tuple(_sibling(path, kind) for kind in kinds if _sibling(path, kind).exists())


def recover(path: Path) -> None:
    """Undo what a killed commit left: put the former cube back and remove half-written siblings. Needs the lock.

    Call it before the cube is opened: arrays opened in a folder that is then renamed read as empty.
    """
    former = _sibling(path, "former")
    try:
        if former.exists() and not path.exists():
            former.rename(path)
        if former.exists():
            _discard(former, path)
        for kind in ("discarded", "staging"):
            if _sibling(path, kind).exists():
                shutil.rmtree(_sibling(path, kind))
    except OSError as error:
        raise _fault(error, path) from error


@contextmanager
def staged(path: Path, *, copy: bool) -> Iterator[Path]:
    """A folder that takes the place of ``path`` when the block ends well and vanishes when it does not.

    Call :func:`recover` before. ``copy`` starts it with the cube's files. Raises :class:`EnvironmentFault` on a full
    disk and on any other failure of the file system; the cube at ``path`` is then what it was.
    """
    staging = _sibling(path, "staging")
    try:
        if copy:
            shutil.copytree(path, staging, copy_function=_link)
        else:
            staging.mkdir(parents=True)
        yield staging
        _swap(staging, path)
    except OSError as error:
        raise _fault(error, path) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno in _FULL:
            raise
        shutil.copy2(source, target)  # a file system without hard links


def _swap(staging: Path, path: Path) -> None:
    former = _sibling(path, "former")
    if path.exists():
        path.rename(former)
    staging.rename(path)
    if former.exists():
        _discard(former, path)


def _discard(former: Path, path: Path) -> None:
    # renamed first: a half-removed folder must never be taken for the former cube
    discarded = _sibling(path, "discarded")
    if discarded.exists():
        shutil.rmtree(discarded)
    former.rename(discarded)
    shutil.rmtree(discarded)


def _fault(error: OSError, path: Path) -> EnvironmentFault:
    if error.errno in _FULL:
        return EnvironmentFault(
            "no space left for the result cube; the former cube and all attempts are intact",
            where=str(path),
            hint="free some space, then rebuild the cube",
        )
    return EnvironmentFault(f"the result cube cannot be written: {error}", where=str(path))
