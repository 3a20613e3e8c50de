"""What killed executions left in an output folder and no result needs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from xcfg.errors import EnvironmentFault
from xcfg.runner.attempt_files import FAILURE
from xcfg.runner.copies import PARTIAL as COPY
from xcfg.runner.durable import sync_folder
from xcfg.runner.exits import NAME as EXIT
from xcfg.runner.seal import NAME as SEAL
from xcfg.runner.store import Store

STAGING = "staging"


@frozen(kw_only=True)
class Leftover:
    """A file or folder that can go: its path, its size in bytes with all below it, and why it is none of a result."""

    path: Path
    size: int
    why: str


def leftovers(out: Path) -> tuple[Leftover, ...]:
    """What can go, sorted by path. Needs the lock: of a folder that is being written, much looks left over.

    Sealed attempts, sound or damaged, and recorded failures are never among it, nor is anything below them.
    """
    found = dict(_found(Store(out)))
    outermost = (path for path in found if not any(parent in found for parent in path.parents))
    return tuple(leftover(path, found[path]) for path in sorted(outermost))


def leftover(path: Path, why: str) -> Leftover:
    """A path that can go, measured."""
    return Leftover(path=path, size=_size(path), why=why)


def remove(items: Sequence[Leftover]) -> None:
    """Remove them, durably; one that is gone by now is passed. Raises EnvironmentFault where one cannot be removed."""
    for item in items:
        try:
            if item.path.is_dir() and not item.path.is_symlink():
                shutil.rmtree(item.path)
            elif item.path.parent.is_dir():
                item.path.unlink(missing_ok=True)
            if item.path.parent.is_dir():
                sync_folder(item.path.parent)
        except OSError as error:
            raise EnvironmentFault(f"it cannot be removed: {error.strerror}", where=str(item.path)) from error


def _found(store: Store) -> Iterator[tuple[Path, str]]:
    root = store.root
    for side in sorted(path.name for path in (root / "sides").glob("*") if path.is_dir()):
        for _, path in store.attempts(side):
            if not _ended(path):
                yield path, "an attempt that was cut off: neither sealed nor recorded as failed"
        yield from ((path, "a copy that was not finished") for path in store.side(side).glob(f"{COPY}*"))
    yield from ((path, "a copy that was not finished") for path in root.glob(f"{COPY}*"))
    for launch in sorted((root / "launches").glob("*")):
        staging = launch / STAGING
        # what an engine that ended by itself left there may say why it did
        if staging.is_dir() and not (launch / EXIT).exists():
            yield staging, "staging of a launch that was killed"
    for path in root.rglob("*.partial"):
        if not _kept(path, root):
            yield path, "half of a write that was killed"


def _ended(attempt: Path) -> bool:
    return any((attempt / name).exists() or (attempt / name).is_symlink() for name in (SEAL, FAILURE))


def _kept(path: Path, root: Path) -> bool:
    """Whether a path lies inside an attempt that has ended: whatever it is called, it may be a payload."""
    return any(_ended(parent) for parent in path.parents if parent != root and parent.is_relative_to(root))


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    return sum(item.lstat().st_size for item in files)
