"""``xcfg compare`` from its options to its document: importers, comparator and analyzer meet here."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from attrs import evolve, frozen

from xcfg.analyzer.curves import Curves, read_curves
from xcfg.analyzer.evidence import Evidence
from xcfg.analyzer.rules import decide
from xcfg.cli.documents import comparison_document, in_context
from xcfg.cli.output import document
from xcfg.cli.recorded import RecordedSide, columns_of, open_side, refuse_one_file
from xcfg.cli.session import Session
from xcfg.comparator.names import FRAMEWORKS, named_metrics
from xcfg.comparator.recorded.compare import Recorded, Terms, compare_recorded
from xcfg.comparator.verdict import failed
from xcfg.comparator.worst import worst_tokens
from xcfg.errors import ArtifactError, EnvironmentFault, InvalidInput
from xcfg.exitcodes import ExitCode
from xcfg.model.codec import unknown
from xcfg.model.dtypes import normal_dtype
from xcfg.model.json import Json
from xcfg.model.result import Comparison
from xcfg.model.scorer import Role
from xcfg.model.status import Status
from xcfg.model.tolerance import DEFAULT_CONTRACT
from xcfg.report.text import TokenText
from xcfg.runner.interrupt import like_ctrl_c

_STEP = 10_000


@frozen(kw_only=True)
class Wanted:
    """The options of ``xcfg compare``."""

    rollout: Path
    train: Path
    format: str
    columns: tuple[str, ...]
    dtype: str
    contract: str
    names: str
    curves: Path | None
    tokenizer: Path | None
    tokens: int
    strict: bool


def compared(wanted: Wanted, session: Session) -> tuple[dict[str, Json], ExitCode]:
    """The document and the exit code. Raises what is the user's to mend; a broken file is a status."""
    registry = session.registry()
    contract = registry.contract(wanted.contract or DEFAULT_CONTRACT)
    if wanted.names and wanted.names not in FRAMEWORKS:
        raise InvalidInput(unknown("framework", wanted.names, sorted(FRAMEWORKS)), where="--names")
    curves = None if wanted.curves is None else read_curves(wanted.curves)
    text = None if wanted.tokenizer is None else TokenText.load(wanted.tokenizer)
    columns = columns_of(wanted.columns)
    terms = Terms(contract=contract, dtype=normal_dtype(wanted.dtype), strict=wanted.strict)
    formats: list[str] = []
    with like_ctrl_c(), _scratch() as scratch:
        try:
            paths = ((wanted.rollout, Role.ROLLOUT), (wanted.train, Role.TRAINING))
            sides = [
                open_side(path, role, wanted.format, mapped, registry)
                for (path, role), mapped in zip(paths, columns, strict=True)
            ]
            formats = [side.format.id for side in sides]
            refuse_one_file(*sides)
            recorded = _read(sides, terms, Path(scratch), session)
        except ArtifactError as error:
            reason = "; ".join(str(fault) for fault in error.faults)
            recorded = Recorded(comparison=failed(Status.INVALID_ARTIFACT, reason, contract))
        return _document(recorded, wanted, curves, formats, text)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for what does not fit in memory, removed however the command ends."""
    try:
        return tempfile.TemporaryDirectory(prefix="xcfg-compare-")
    except OSError as error:
        raise EnvironmentFault(
            f"no folder for temporary files: {error.strerror}",
            where=tempfile.tempdir or "TMPDIR",
            hint="free some space, or name another folder in TMPDIR",
        ) from error


def _read(sides: list[RecordedSide], terms: Terms, scratch: Path, session: Session) -> Recorded:
    def seen(side: int, records: int) -> None:
        if not session.quiet and records % _STEP == 0:
            click.echo(f"xcfg: {sides[side].role.value}: {records} records read", err=True)

    return compare_recorded(sides[0].records(), sides[1].records(), terms, scratch, seen)


def _document(
    recorded: Recorded, wanted: Wanted, curves: Curves | None, formats: list[str], text: TokenText | None
) -> tuple[dict[str, Json], ExitCode]:
    comparison = _ruled(recorded.comparison, curves)
    worst, named = [], None
    if recorded.pairs is not None and comparison.status.judged:
        worst = worst_tokens(recorded.pairs, wanted.tokens)
        if wanted.names:
            named = {"framework": wanted.names, "metrics": named_metrics(wanted.names, recorded.pairs)}
    content = document(
        "compare",
        comparison.status.value,
        rollout=str(wanted.rollout),
        training=str(wanted.train),
        formats=formats,
        **comparison_document(comparison),
        names=named,
        tokens=[in_context(item, text) for item in worst],
    )
    return content, comparison.status.exit_code


def _ruled(comparison: Comparison, curves: Curves | None) -> Comparison:
    """The comparison with the findings of the decision rules after its own."""
    findings = decide(Evidence(comparison=comparison, curves=curves))
    return evolve(comparison, findings=(*comparison.findings, *findings))
