"""An output folder without what no result needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from xcfg.cli.commit import CUBE, cube_attributes
from xcfg.cli.stored import check_folder, load_judged
from xcfg.cube.staging import remnants
from xcfg.cube.writer import rebuild
from xcfg.runner.leftovers import Leftover, leftover, leftovers, remove
from xcfg.runner.lock import locked

if TYPE_CHECKING:
    from xcfg.plugin.registry import Registry


@frozen(kw_only=True)
class Compacted:
    """What went, and the bytes of the cube before and after; the same twice where nothing was to be changed."""

    removed: tuple[Leftover, ...]
    cube_before: int
    cube_after: int


def compact_folder(folder: Path, registry: Registry, *, dry_run: bool) -> Compacted:
    """Remove what killed executions left and write the cube from scratch, its layout from the plan as it is now.

    The cube is judged and written first: where that fails, nothing was removed. With ``dry_run`` nothing is changed.
    """
    check_folder(folder)
    with locked(folder):
        before = _size(folder / CUBE)
        beside = (leftover(path, "half of a commit of the cube that was killed") for path in remnants(folder / CUBE))
        found = (*leftovers(folder), *beside)
        if not dry_run:
            plan, run, outcomes = load_judged(folder, registry)
            rebuild(folder / CUBE, plan, outcomes, cube_attributes(plan, run, registry), fresh=True)
            remove(found)
        return Compacted(removed=found, cube_before=before, cube_after=_size(folder / CUBE))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
