"""The seal of a folder: ``COMPLETE``, written last, with the SHA-256 of every payload."""

from __future__ import annotations

from collections.abc import Mapping
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
    found = (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return sorted(path for path in found if path != folder / NAME)


def seal(folder: Path, subject: str) -> None:
    """Make everything in ``folder`` durable, then write the seal. The payloads must be closed."""
    files = {path.relative_to(folder).as_posix(): file_digest(path) for path in payloads(folder)}
    for item in sorted({path.parent for path in payloads(folder)} | {folder}):
        sync_folder(item)
    replace(folder / NAME, encode(Seal(subject=subject, files=files)))


def sealed(folder: Path) -> bool:
    """Whether a seal is there at all; :func:`verify` says whether it holds."""
    return (folder / NAME).is_file()


def verify(folder: Path, subject: str) -> None:
    """Raise ArtifactError, naming the file, unless every payload is as it was sealed and nothing was added."""
    path = folder / NAME
    try:
        found = structure(load_json(path.read_bytes(), where=str(path)), Seal)
    except (OSError, XcfgError) as error:
        raise ArtifactError(f"the seal is unreadable: {error}", where=str(path)) from error
    if found.schema != SCHEMA:
        raise ArtifactError(f"schema {found.schema!r}, expected {SCHEMA!r}", where=str(path))
    if found.subject != subject:
        raise ArtifactError(f"the seal is of {found.subject!r}, expected {subject!r}", where=str(path))
    present = {item.relative_to(folder).as_posix() for item in payloads(folder)}
    for name in sorted(present | set(found.files)):
        if name not in present:
            raise ArtifactError("a sealed file is missing", where=str(folder / name))
        if name not in found.files:
            raise ArtifactError("this file was added after sealing", where=str(folder / name))
        if file_digest(folder / name) != found.files[name]:
            raise ArtifactError("the content is not what was sealed", where=str(folder / name))
