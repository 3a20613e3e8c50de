"""What the ranks of one launch have left so far, read by the parent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import define, field

from xcfg.errors import InvalidInput
from xcfg.model.codec import load_json, structure
from xcfg.model.sample import TokenBatch
from xcfg.model.status import Status
from xcfg.runner.failure import RankFailure
from xcfg.runner.launch import LaunchSpec, folders
from xcfg.runner.merge import SideInvalid
from xcfg.runner.rank_record import failure_name, phase_name, record_name, sampled_name

PHASES = ("import", "open", "sample", "score", "close")


def present(folder: Path, ranks: int, name: Callable[[int], str]) -> int:
    """How many ranks have written their file of this kind."""
    return sum((folder / name(rank)).exists() for rank in range(ranks))


def complete(folder: Path, ranks: int) -> bool:
    """Whether every rank has written its record."""
    return present(folder, ranks, record_name) == ranks


def first_failure(folder: Path, ranks: int) -> RankFailure | None:
    """The failure that came first: those of other ranks usually follow from it."""
    found = [
        structure(load_json(path.read_bytes(), where=str(path)), RankFailure)
        for rank in range(ranks)
        if (path := folder / failure_name(rank)).exists()
    ]
    return min(found, key=lambda item: item.at, default=None)


def phase(folder: Path, ranks: int) -> str:
    """What the rank that got furthest was doing; empty where none had begun.

    Ranks open together: where one came to score, the launch had succeeded, however far the others were when they were
    ended for its sake.
    """
    paths = [folder / phase_name(rank) for rank in range(ranks)]
    return max((path.read_text() for path in paths if path.exists()), key=PHASES.index, default="")


def finished(spec: LaunchSpec) -> int:
    """Files that say that a rank of this machine has sampled, scored or failed at a side run."""
    names = (record_name, failure_name, sampled_name)
    return sum(present(folder, spec.world_size, name) for folder in folders(spec) for name in names)


def read_sampled(folder: Path, ranks: int) -> TokenBatch:
    """The batch all ranks sampled. Raises :class:`SideInvalid` where they differ or the file is unusable."""
    paths = [folder / sampled_name(rank) for rank in range(ranks)]
    try:
        batches = [structure(load_json(path.read_bytes(), where=path.name), TokenBatch) for path in paths]
    except (OSError, InvalidInput) as error:
        raise SideInvalid(Status.INVALID_ARTIFACT, f"the sampled batch is unusable: {error}") from error
    if len({batch.digest() for batch in batches}) > 1:
        raise SideInvalid(Status.INVALID_IDENTITY, "the ranks sampled different tokens")
    return batches[0]


@define
class LogParts:
    """Cuts the growing logs of a launch into the parts that belong to each of its side runs."""

    folder: Path
    taken: dict[Path, int] = field(factory=dict)

    def cut(self) -> dict[str, bytes]:
        """What was written since the last cut, by path below the log folder."""
        parts: dict[str, bytes] = {}
        for path in sorted(self.folder.rglob("*.log")):
            with path.open("rb") as stream:
                stream.seek(self.taken.get(path, 0))
                data = stream.read()
            self.taken[path] = self.taken.get(path, 0) + len(data)
            if data:
                parts[path.relative_to(self.folder).as_posix()] = data
        return parts
