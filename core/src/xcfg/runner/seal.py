"""The seal of a folder: ``COMPLETE``, written last, with the SHA-256 of every payload."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import field, frozen

from xcfg.errors import ArtifactError, XcfgError
from xcfg.model.codec import load_json, structure
from xcfg.model.json import freeze
from xcfg.plugin.checkpoint import file_digest
from xcfg.runner.durable import encode, replace, sync_folder

SCHEMA = "xcfg.seal/1"
NAME = "COMPLETE"


@frozen(kw_only=True)
class Seal:
    """``subject`` says what was sealed (a side id with its attempt, or the token batch); ``files`` path to SHA-256."""

    schema: str = SCHEMA
    subject: str
    files: Mapping[str, str] = field(converter=freeze)


def payloads(folder: Path) -> list[Path]:
    """Every file below ``folder`` but the seal itself, sorted by relative path."""
    return [folder / name for name in _names(folder)]


def _names(folder: Path) -> list[str]:
    """Relative paths of the payloads, sorted part by part; plain strings, for this is done for every attempt read."""
    return sorted((name for name in _files(os.fspath(folder), "") if name != NAME), key=lambda name: name.split("/"))


def _files(folder: str, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() or entry.is_file():
                yield prefix + entry.name
            elif entry.is_dir():
                yield from _files(entry.path, f"{prefix}{entry.name}/")


def seal(folder: Path, subject: str) -> None:
    """Make everything in ``folder`` durable, then write the seal. The payloads must be closed."""
    files = {name: file_digest(folder / name) for name in _names(folder)}
    for item in sorted({(folder / name).parent for name in files} | {folder}):
        sync_folder(item)
    replace(folder / NAME, encode(Seal(subject=subject, files=files)))


def sealed(folder: Path) -> bool:
    """Whether a seal is there at all; :func:`verify` says whether it holds."""
    return (folder / NAME).is_file()


def verify(folder: Path, subject: str) -> dict[str, bytes]:
    """The payloads in ``folder`` itself, by name, as they were sealed; those in folders below are checked and left.

    What is parsed is thus what was hashed, read once. Raises ArtifactError, naming the file, unless every payload is as
    it was sealed and nothing was added.
    """
    path = folder / NAME
    try:
        found = structure(load_json(path.read_bytes(), where=str(path)), Seal)
    except (OSError, XcfgError) as error:
        raise ArtifactError(f"the seal is unreadable: {error}", where=str(path)) from error
    if found.schema != SCHEMA:
        raise ArtifactError(f"schema {found.schema!r}, expected {SCHEMA!r}", where=str(path))
    if found.subject != subject:
        raise ArtifactError(f"the seal is of {found.subject!r}, expected {subject!r}", where=str(path))
    try:
        return _checked(folder, found.files)
    except OSError as error:
        raise ArtifactError(f"unreadable: {error}", where=str(folder)) from error


def _checked(folder: Path, files: Mapping[str, str]) -> dict[str, bytes]:
    present, content = set(_names(folder)), {}
    for name in sorted(present | files.keys()):
        path = folder / name
        if name not in present:
            raise ArtifactError("a sealed file is missing", where=str(path))
        if name not in files:
            raise ArtifactError("this file was added after sealing", where=str(path))
        if path.is_symlink():
            raise ArtifactError("a link stands in the place of a sealed file", where=str(path))
        if "/" in name:
            digest = file_digest(path)
        else:
            content[name] = path.read_bytes()
            digest = hashlib.sha256(content[name]).hexdigest()
        if digest != files[name]:
            raise ArtifactError("the content is not what was sealed", where=str(path))
    return content
