"""Copies of sealed folders: made beside their place, sealed last, and put there with one rename."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from xcfg.errors import ArtifactError, XcfgError
from xcfg.model.codec import load_json, structure
from xcfg.model.json import Json
from xcfg.runner.attempt_files import Surroundings
from xcfg.runner.durable import encode, make_folders, room, sync_folder, write_new
from xcfg.runner.seal import NAME, Seal, payloads, seal, sealed, verify

PARTIAL = ".copy-"
"""How the name of a copy begins that was not finished."""

_ENVIRONMENT = "environment.json"


def copy_sealed(source: Path, target: Path, subject: str) -> None:
    """Copy a sealed folder with its seal. Raises ArtifactError where the copy does not hold."""
    with _beside(target) as partial:
        _copy(source, partial, {})
        write_new(partial / NAME, (source / NAME).read_bytes())
        verify(partial, subject)


def copy_attempt(source: Path, target: Path, subject: str, around: Surroundings) -> None:
    """Copy a sealed attempt under another number and launch: only what names these differs, and is sealed anew.

    Raises ArtifactError where another payload did not arrive as it was sealed.
    """
    with _beside(target) as partial:
        _copy(source, partial, {_ENVIRONMENT: encode(around)})
        seal(partial, subject)
        if _files(partial) != _files(source):
            raise ArtifactError("the copy is not what was sealed", where=str(source))


def same_attempt(one: Path, other: Path, subject: str) -> bool:
    """Whether ``other``, sealed as ``subject``, holds the very content of ``one`` and still does.

    The launch is left out: its name is local to an output folder.
    """
    if not sealed(other):
        return False
    try:
        if _files(one) != _files(other) or _around(one) != _around(other):
            return False
        verify(other, subject)
    except ArtifactError:
        return False  # a damaged one does not stand for the content it once had
    return True


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A folder next to ``target`` that becomes it when the block ends well and vanishes when it does not."""
    make_folders(target.parent)
    partial = target.with_name(f"{PARTIAL}{target.name}.{secrets.token_hex(4)}")
    try:
        with room(partial):
            partial.mkdir()
            yield partial
        for folder in (*(path for path in partial.rglob("*") if path.is_dir()), partial):
            sync_folder(folder)
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync_folder(target.parent)


def _copy(source: Path, target: Path, instead: Mapping[str, bytes]) -> None:
    for path in payloads(source):
        name = path.relative_to(source).as_posix()
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        write_new(place, instead[name] if name in instead else path.read_bytes())


def _files(folder: Path) -> dict[str, str]:
    """The sealed digests but that of the file that names the launch."""
    path = folder / NAME
    try:
        files = structure(load_json(path.read_bytes(), where=str(path)), Seal).files
    except (OSError, XcfgError) as error:
        raise ArtifactError(f"the seal is unreadable: {error}", where=str(path)) from error
    return {name: digest for name, digest in files.items() if name != _ENVIRONMENT}


def _around(folder: Path) -> dict[str, Json]:
    path = folder / _ENVIRONMENT
    try:
        found = dict(load_json(path.read_bytes(), where=str(path)))
    except (OSError, XcfgError) as error:
        raise ArtifactError(f"unreadable: {error}", where=str(path)) from error
    return {name: value for name, value in found.items() if name != "launch"}
