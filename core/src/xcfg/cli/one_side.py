"""A run of one side alone: what was sealed, what failed, and what that says to the shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xcfg.cli.documents import verdict
from xcfg.exitcodes import ExitCode
from xcfg.model.json import Json

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.plan import Plan
    from xcfg.model.scorer import Role
    from xcfg.runner.report import RunReport

SEALED = "sealed"
"""The status of a run that sealed every side run it was asked for and compared nothing."""


def side_document(plan: Plan, report: RunReport, role: Role) -> dict[str, Json]:
    """How the side runs of one role ended: how many were planned, sealed now, taken from disk, and failed."""
    planned = {
        config.digest() for case in plan.runnable for config in (case.rollout, case.training) if config.role is role
    }
    runs = [report.sides[side] for side in sorted(planned & report.sides.keys())]
    sealed = [run for run in runs if run.result is not None]
    return {
        "role": role.value,
        "planned": len(planned),
        "sealed": sum(not run.reused for run in sealed),
        "reused": sum(run.reused for run in sealed),
        "failed": [
            {"side_id": run.side_id, "status": run.failure.status, "reason": run.failure.reason}
            for run in runs
            if run.failure is not None
        ],
    }


def one_side_verdict(outcomes: Sequence[CaseOutcome], sides: dict[str, Json], *, strict: bool) -> tuple[str, ExitCode]:
    """That of the judged cases; where there are none, success means that every planned side run is sealed."""
    if not outcomes and sides["sealed"] + sides["reused"] == sides["planned"]:
        return SEALED, ExitCode.PASS
    return verdict(outcomes, strict=strict)
