"""What a finished run leaves in its folder beside the sealed attempts: comparisons and the cube."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.cli.documents import case_document
from xcfg.cli.experiment import tell_observers
from xcfg.cli.judge import contract_of
from xcfg.cli.stored import load_judged
from xcfg.cube.layout import LayoutChanged
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.runner.artifacts import load_plan
from xcfg.runner.durable import encode, make_folders, replace_changed
from xcfg.runner.lock import locked

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.plan import Plan
    from xcfg.plugin.registry import Registry
    from xcfg.runner.report import RunReport

CUBE = "cube.zarr"
_WRITERS = 8


def commit_run(folder: Path, report: RunReport, outcomes: Sequence[CaseOutcome], registry: Registry) -> None:
    """Write ``cases/<id>/comparison.json`` and commit the cube, under the folder's lock.

    The cube covers every case planned in the folder, not only those of this run.
    """
    from xcfg.cube.writer import commit  # zarr: nothing before this needs it, and it takes a while to import

    with locked(folder):
        plan = load_plan(folder)
        write_comparisons(folder, plan, outcomes, fake=report.fake)
        try:
            commit(folder / CUBE, plan, outcomes, cube_attributes(plan, report, registry))
        except LayoutChanged:
            rebuild_run(folder, registry)
    for outcome in outcomes:
        tell_observers(registry, "xcfg_case_finished", case=outcome.case, comparison=outcome.comparison)
    tell_observers(registry, "xcfg_cube_committed", path=str(folder / CUBE))


def write_comparisons(folder: Path, plan: Plan, outcomes: Sequence[CaseOutcome], *, fake: bool) -> None:
    """Write ``cases/<id>/comparison.json`` of each outcome where it differs; the caller holds the lock.

    Several at once: a file that survives a power cut is mostly waiting for the disk.
    """
    head = {"schema": "xcfg.comparison/1", "limited": plan.limit, "fake": fake}

    def write(outcome: CaseOutcome) -> None:
        place = folder / "cases" / outcome.case.id
        make_folders(place)
        replace_changed(place / "comparison.json", encode({**head, **case_document(outcome)}))

    with ThreadPoolExecutor(max_workers=_WRITERS, thread_name_prefix="comparison") as pool:
        list(pool.map(write, outcomes))


def rebuild_run(folder: Path, registry: Registry) -> int:
    """Make the cube again from the sealed attempts; returns the number of cases judged."""
    from xcfg.cube.writer import rebuild

    plan, run, outcomes = load_judged(folder, registry)
    rebuild(folder / CUBE, plan, outcomes, cube_attributes(plan, run, registry))
    return len(outcomes)


def cube_attributes(plan: Plan, report: RunReport, registry: Registry) -> dict[str, Json]:
    """What the cube says of itself: experiment, contract, identity, plugins, and whether anything was a fake."""
    return {
        "experiment": plan.experiment.name,
        "baseline": plan.baseline,
        "contract": unstructure(contract_of(plan, registry).ref),
        "identity": unstructure(report.identity),
        "plugins": {item.distribution: item.version for item in registry.plugins if item.state == "loaded"},
        "fake": report.fake,
        "measured": {"wall_s": report.wall_s, "engine_s": report.engine_s, "host": platform.node()},
    }
