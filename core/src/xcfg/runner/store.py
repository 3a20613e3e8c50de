"""Where things lie in an output folder.

``run.json`` binds the folder; ``plan.json`` holds every case planned here; ``tokens/`` the frozen batch;
``sides/<side-id>/attempt-NNNN/`` the attempts; ``launches/NNNN/`` the processes that made them, with their logs.
"""

from __future__ import annotations

import re
from pathlib import Path

from attrs import frozen

from xcfg.model.case import SideConfig
from xcfg.model.ids import short_id
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.runner.durable import make_folders, sync_folder

_NUMBER = re.compile(r"(?:attempt-)?(\d{4,})")


@frozen
class Store:
    """Paths of one output folder."""

    root: Path

    @property
    def run(self) -> Path:
        """What the folder is bound to and how the last execution ended."""
        return self.root / "run.json"

    @property
    def plan(self) -> Path:
        """The newest plan, with the cases of those before it."""
        return self.root / "plan.json"

    @property
    def tokens(self) -> Path:
        """The frozen token batch."""
        return self.root / "tokens"

    @property
    def checkpoints(self) -> Path:
        """Digests of checkpoints by the files' size and time of change."""
        return self.root / "checkpoints.json"

    def side(self, side_id: str) -> Path:
        """All attempts of one side run."""
        return self.root / "sides" / side_id

    def attempts(self, side_id: str) -> tuple[tuple[int, Path], ...]:
        """Number and folder of each attempt, the oldest first."""
        return _numbered(self.side(side_id))

    def new_attempt(self, side_id: str) -> tuple[int, Path]:
        """A fresh attempt folder with the next number."""
        return _next(self.side(side_id), "attempt-")

    def new_launch(self) -> Path:
        """A fresh launch folder with the next number."""
        return _next(self.root / "launches", "")[1]

    def launch(self, name: str) -> Path:
        """The launch folder of this name."""
        return self.root / "launches" / name

    def relative(self, path: Path) -> str:
        """``path`` as it is named inside the folder."""
        return path.relative_to(self.root).as_posix()


def _numbered(folder: Path) -> tuple[tuple[int, Path], ...]:
    if not folder.is_dir():
        return ()
    found = ((_NUMBER.fullmatch(path.name), path) for path in folder.iterdir() if path.is_dir())
    return tuple(sorted((int(match[1]), path) for match, path in found if match))


def _next(folder: Path, prefix: str) -> tuple[int, Path]:
    make_folders(folder)
    number = max((item[0] for item in _numbered(folder)), default=0)
    while True:
        number += 1
        path = folder / f"{prefix}{number:04d}"
        try:
            path.mkdir()
        except FileExistsError:  # another engine of this execution took the number
            continue
        sync_folder(folder)
        return number, path


def side_id(config: SideConfig, token_digest: str, checkpoint: CheckpointDigest) -> str:
    """16 hex digits from the configuration, the tokens and the content of the checkpoint."""
    return short_id(
        {
            "side": config.digest(),
            "tokens": token_digest,
            "checkpoint": checkpoint.weights,
            "tokenizer": checkpoint.tokenizer,
        }
    )
