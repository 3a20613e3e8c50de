"""What a finished run leaves in its folder beside the sealed attempts: comparisons and the cube."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.cli.documents import case_document
from xcfg.cli.judge import contract_of
from xcfg.cube.layout import LayoutChanged
from xcfg.cube.writer import commit, rebuild
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.runner.durable import make_folders, write_json
from xcfg.runner.lock import locked

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.plan import Plan
    from xcfg.plugin.registry import Registry
    from xcfg.runner.report import RunReport

CUBE = "cube.zarr"


def commit_run(
    folder: Path, plan: Plan, report: RunReport, outcomes: Sequence[CaseOutcome], registry: Registry
) -> None:
    """Write ``cases/<id>/comparison.json`` and commit the cube, under the folder's lock."""
    with locked(folder):
        for outcome in outcomes:
            place = folder / "cases" / outcome.case.id
            make_folders(place)
            write_json(place / "comparison.json", {"schema": "xcfg.comparison/1", **case_document(outcome)})
        _commit_cube(folder / CUBE, plan, outcomes, cube_attributes(plan, report, registry))
    for outcome in outcomes:
        registry.notify("xcfg_case_finished", case=outcome.case, comparison=outcome.comparison)
    registry.notify("xcfg_cube_committed", path=str(folder / CUBE))


def _commit_cube(path: Path, plan: Plan, outcomes: Sequence[CaseOutcome], attributes: dict[str, Json]) -> None:
    """Append to the cube; where the experiment's axes are others than the cube's, make it again from the attempts."""
    try:
        commit(path, plan, outcomes, attributes)
    except LayoutChanged:
        rebuild(path, plan, outcomes, attributes)


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
