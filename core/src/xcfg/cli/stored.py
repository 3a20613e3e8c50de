"""An executed run read back from its folder and judged again from the tensors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.errors import InvalidInput

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.plan import Plan
    from xcfg.plugin.registry import Registry
    from xcfg.runner.report import RunReport


def load_judged(folder: Path, registry: Registry) -> tuple[Plan, RunReport, tuple[CaseOutcome, ...]]:
    """Plan, side runs and outcomes of a run's folder. Raises InvalidInput where the folder holds no run."""
    from xcfg.cli.judge import contract_of, judge
    from xcfg.runner.artifacts import load_plan, load_run

    check_folder(folder)
    plan = load_plan(folder)
    run = load_run(folder, plan)
    return plan, run, judge(plan, run, contract_of(plan, registry))


def check_folder(folder: Path) -> None:
    """Raise InvalidInput where the folder holds no run."""
    if not (folder / "run.json").is_file():
        raise InvalidInput(f"{folder} holds no run", where="DIR", hint="give the folder that `xcfg run --out` wrote")
