"""The JSON document of ``gate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.cli.documents import case_document
from xcfg.cli.gate.checks import Check, ending
from xcfg.cli.output import document
from xcfg.cli.search.document import outcome_fields
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.model.status import Status

if TYPE_CHECKING:
    from xcfg.cli.executing import Executed
    from xcfg.cli.gate.file import Gate


def gate_document(
    gate: Gate, file: Path, folder: Path, checks: list[Check], done: Executed
) -> tuple[dict[str, Json], int]:
    """The document of a gate that ran, and the exit code."""
    status, code = ending(checks)
    return _document(gate, file, status, folder, checks, done), code


def refused_document(gate: Gate, file: Path, folder: Path, reason: str) -> tuple[dict[str, Json], int]:
    """The document of a gate that cannot be asked, because what it pins is of something else."""
    content = _document(gate, file, Status.INVALID_IDENTITY.value, folder, [], None)
    return {**content, "reason": reason}, Status.INVALID_IDENTITY.exit_code


def _document(
    gate: Gate, file: Path, status: str, folder: Path, checks: Sequence[Check], done: Executed | None
) -> dict[str, Json]:
    return document(
        "gate",
        status,
        gate=str(file),
        name=gate.experiment,
        out=str(folder),
        fake=done is not None and done.report.fake,
        reason="",
        level=gate.level,
        aligned=sorted(gate.aligned),
        values=unstructure(gate.values),
        still_different=unstructure(gate.still_different),
        engines=None if done is None else unstructure(done.report.engines),
        wall_s=0.0 if done is None else done.report.wall_s,
        checks=[_check(check) for check in checks],
        cases=[] if done is None else [case_document(outcome) for outcome in done.outcomes],
    )


def _check(check: Check) -> Mapping[str, Json]:
    return {
        **outcome_fields(check.outcome),
        "role": check.case.role,
        "case": check.case.id,
        "aligned": sorted(check.case.sets),
        "expected": check.expected,
        "held": check.held,
        "status": check.status,
        "advice": check.advice,
    }
