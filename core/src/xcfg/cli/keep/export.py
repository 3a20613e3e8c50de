"""Rows of a cube in a file that appears whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from xcfg.cube.export import Table
from xcfg.cube.formats import FORMATS, SUFFIXES
from xcfg.errors import EnvironmentFault, InvalidInput
from xcfg.runner.durable import beside, room, sync_folder

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


def format_of(target: Path, given: str | None) -> str:
    """The format that was asked for, or that of the file's suffix. Raises InvalidInput where neither says it."""
    found = given or SUFFIXES.get(target.suffix.removeprefix(".").lower())
    if found is None:
        raise InvalidInput(
            f"the suffix {target.suffix!r} names no format", where=str(target), hint=f"--format {'|'.join(FORMATS)}"
        )
    return found


def check_target(target: Path, *, force: bool) -> None:
    """Raise InvalidInput where the file is there already or its folder is not."""
    if target.is_dir():
        raise InvalidInput("this is a folder", where=str(target), hint="name a file")
    if target.exists() and not force:
        raise _taken(target)
    if not target.parent.is_dir():
        raise InvalidInput("there is no such folder", where=str(target.parent))


def write_table(table: Table, target: Path, form: str, *, force: bool) -> int:
    """Write the table beside ``target`` and put it there in one step; returns the number of rows.

    Raises InvalidInput where the file is there and ``force`` is not given, EnvironmentFault without room or the package
    that the format needs.
    """
    with beside(target) as partial:
        try:
            with room(target), partial.open("x+b") as stream:
                count = FORMATS[form](table, stream)
                stream.flush()
                os.fsync(stream.fileno())
        except EnvironmentFault as error:
            if not error.faults[0].where:
                fault = error.faults[0]
                raise EnvironmentFault(fault.message, where=str(target), hint=fault.hint) from error
            raise
        if force:
            partial.replace(target)
        else:
            _place(partial, target)
    sync_folder(target.parent)
    return count


def _place(partial: Path, target: Path) -> None:
    """Give the file its name unless that is taken: a rename would replace what came in between."""
    try:
        os.link(partial, target)
    except FileExistsError as error:
        raise _taken(target) from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        partial.replace(target)  # a file system without hard links: check_target has looked


def _taken(target: Path) -> InvalidInput:
    return InvalidInput("the file is there already", where=str(target), hint="--force replaces it")
