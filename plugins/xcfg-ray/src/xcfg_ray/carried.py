"""What a machine sends of the files that a launch leaves there, and how the coordinator writes them down.

A batch holds every file that was written before some moment: a record never comes without its tensor. Files appear
under their final names only when their batch is there as a whole.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from attrs import define, field, frozen

from xcfg.errors import EnvironmentFault


@frozen(kw_only=True)
class Part:
    """A piece of the file ``path``, relative to the launch's folder; ``last`` of it in this batch.

    ``grows``: the file is a log, which is added to at ``offset``.
    """

    path: str
    offset: int
    data: bytes
    last: bool
    grows: bool


@frozen(kw_only=True)
class Sent:
    """Parts in their order. ``whole``: the batch ends with them. ``over``: the command's exit code; nothing follows."""

    parts: tuple[Part, ...]
    whole: bool
    over: int | None = None


@define(kw_only=True)
class Receiver:
    """Writes what one machine sends below ``folder``."""

    folder: Path
    _ready: list[tuple[Path, Path]] = field(factory=list)

    def take(self, sent: Sent) -> bool:
        """Write the parts; True where a batch is there as a whole. Raises EnvironmentFault where there is no room."""
        try:
            for part in sent.parts:
                self._write(part)
            if sent.whole:
                for arriving, path in self._ready:
                    arriving.replace(path)
                self._ready.clear()
        except OSError as error:
            raise EnvironmentFault(
                f"cannot be written: {os.strerror(error.errno or 0)}",
                where=str(error.filename or self.folder),
                hint="free some space and run again; what is sealed is kept",
            ) from error
        return sent.whole

    def _write(self, part: Part) -> None:
        name = PurePosixPath(part.path)
        if name.is_absolute() or ".." in name.parts:
            raise EnvironmentFault(f"a machine sent a file {part.path!r}", where=str(self.folder))
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path if part.grows else path.with_name(f".{path.name}.arriving")
        target.touch()
        with target.open("r+b") as stream:
            stream.truncate(part.offset)
            stream.seek(part.offset)
            stream.write(part.data)
        if part.last and not part.grows:
            self._ready.append((target, path))
