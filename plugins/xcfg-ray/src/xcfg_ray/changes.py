"""Finds the files that a launch has written since the last look, on the machine where it runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from attrs import define, field, frozen

from xcfg_ray.carried import Part

PIECE = 4 << 20
"""Bytes of one part, and of what a log may add to one batch."""


@frozen
class _Seen:
    inode: int
    changed: int
    size: int


@define(kw_only=True)
class Changes:
    """The files below ``folder``. ``beat`` is a file beside it, on the same file system, for telling the time."""

    folder: Path
    beat: Path
    _sent: dict[str, _Seen] = field(factory=dict)

    def batch(self, *, everything: bool = False) -> Iterator[Part]:
        """What was written before this moment, in the order in which it was; ``everything`` when nothing writes.

        The moment is told by the file system itself. A file older than it was in place when the search began, and so
        was all that its writer had written before: without the moment, a search could miss a tensor that appears where
        it has already been, and find the record that is written next.
        """
        self.beat.write_bytes(b"")
        os.utime(self.beat)
        moment = self.beat.stat().st_mtime_ns
        found = []
        for place, _, names in os.walk(self.folder):
            for name in names:
                path = Path(place) / name
                seen = _look(path)
                if seen is None or name.startswith("."):
                    continue
                if everything or seen.changed < moment or _grows(path):
                    found.append((seen.changed, path, seen))
        for _, path, _ in sorted(found, key=lambda item: item[:2]):
            with suppress(FileNotFoundError), path.open("rb") as stream:  # what has gone meanwhile is not missed
                yield from self._parts(path, stream, everything)

    def _parts(self, path: Path, stream: BinaryIO, everything: bool) -> Iterator[Part]:
        name, seen = path.relative_to(self.folder).as_posix(), _seen(os.fstat(stream.fileno()))
        before = self._sent.get(name)
        if before == seen:
            return
        grows = _grows(path)
        offset, end = 0, seen.size
        if grows and before is not None and before.inode == seen.inode and before.size <= seen.size:
            offset = before.size
        if grows and not everything:
            end = min(end, offset + PIECE)
        while True:
            stream.seek(offset)
            data = stream.read(min(PIECE, end - offset))
            offset += len(data)
            last = offset >= end or not data
            yield Part(path=name, offset=offset - len(data), data=data, last=last, grows=grows)
            if last:
                break
        self._sent[name] = _Seen(seen.inode, seen.changed if offset == seen.size else 0, offset)


def _grows(path: Path) -> bool:
    return path.suffix == ".log"


def _look(path: Path) -> _Seen | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return _seen(found) if stat.S_ISREG(found.st_mode) else None


def _seen(found: os.stat_result) -> _Seen:
    return _Seen(found.st_ino, found.st_mtime_ns, found.st_size)
