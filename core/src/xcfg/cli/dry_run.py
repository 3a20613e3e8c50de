"""``xcfg run --dry-run``: the plan and the schedule of its execution, without executing or writing anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.cli.commands.plan import print_plan, refuse_unsupported, summary
from xcfg.cli.experiment import Selection
from xcfg.cli.output import document, emit
from xcfg.cli.session import Session
from xcfg.cli.staged import CONDITIONAL, first_stage
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.report.schedule import print_schedule
from xcfg.runner.forecast import EngineForecast, forecast

if TYPE_CHECKING:
    from rich.console import Console

    from xcfg.model.plan import Plan
    from xcfg.plugin.registry import Registry
    from xcfg.runner.options import RunOptions


def show_schedule(
    session: Session,
    selection: Selection,
    plan: Plan,
    registry: Registry,
    folder: Path,
    options: RunOptions,
    *,
    strict: bool,
    as_json: bool,
) -> None:
    """Print it. Raises what the execution would raise before it touches anything."""
    if strict:
        refuse_unsupported(plan)
    found = forecast(plan, registry, folder, options)
    schedule: dict[str, Json] = {
        "out": str(folder),
        "engines": [_engine(item) for item in found.engines],
        "tokens": found.tokens,
        "jobs": found.jobs,
        "estimate_s": found.estimate_s,
        "note": "" if first_stage(selection) is None else CONDITIONAL,
    }
    content = document("plan", **summary(plan, registry), schedule=schedule)

    def human(screen: Console) -> None:
        print_plan(screen, content)
        print_schedule(screen, schedule)

    emit(session, as_json, content, human)


def _engine(engine: EngineForecast) -> Json:
    return {
        "key": engine.key,
        "role": engine.config.role.value,
        "scorer": engine.config.scorer,
        "samples": engine.samples,
        "built": engine.built,
        "sides": [
            {
                "side_id": side.side_id,
                "knobs": unstructure(side.config.knobs),
                "cases": side.cases,
                "reused": side.reused,
                "refused": side.refused,
            }
            for side in engine.sides
        ],
        "cases": engine.cases,
        "reused": sum(side.reused is not None for side in engine.sides),
        "estimate_s": engine.estimate_s,
    }
