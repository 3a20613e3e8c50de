"""Results of several folders in one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.cli.commit import CUBE, cube_attributes, write_comparisons
from xcfg.cli.experiment import tell_observers
from xcfg.cli.stored import check_folder, load_judged
from xcfg.cube.writer import rebuild
from xcfg.runner.lock import locked
from xcfg.runner.takeover import Taken, take_over

if TYPE_CHECKING:
    from xcfg.plugin.registry import Registry


def merge_folders(folder: Path, others: Mapping[str, Path], registry: Registry) -> Taken:
    """Take over what ``others`` (by the name to report them under) hold, judge it, and make the cube again.

    Errors as :func:`xcfg.runner.takeover.take_over`.
    """
    check_folder(folder)
    with locked(folder):
        taken = take_over(folder, others)
        plan, run, outcomes = load_judged(folder, registry)
        write_comparisons(folder, plan, outcomes, fake=run.fake)
        rebuild(folder / CUBE, plan, outcomes, cube_attributes(plan, run, registry))
    tell_observers(registry, "xcfg_cube_committed", path=str(folder / CUBE))
    return taken
