"""The JSON document of ``search`` and ``explain``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.analyzer.search.claim import Claim, Stopped
from xcfg.analyzer.search.outcome import Verdict
from xcfg.cli.documents import finding_document
from xcfg.cli.output import document
from xcfg.cli.search.costs import cost_documents, priced
from xcfg.exitcodes import ExitCode
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.model.status import Status

if TYPE_CHECKING:
    from xcfg.analyzer.search.outcome import Observed, Outcome
    from xcfg.analyzer.search.problem import Alignment
    from xcfg.cli.search.executor import Executor
    from xcfg.model.result import Finding
    from xcfg.planner.alignment_space import AlignmentSpace


def answer_document(
    command: str, folder: Path, claim: Claim, executor: Executor, findings: Sequence[Finding], **more: Json
) -> dict[str, Json]:
    """The document of ``search`` or ``explain``, each with its own fields in ``more``."""
    space = executor.space
    return document(
        command,
        ending(claim)[0],
        out=str(folder),
        name=space.experiment.name,
        fake=executor.fake,
        limited=space.tokens.get("limit"),
        **more,
        **claim_document(claim, space, findings),
        costs=cost_documents(priced(space, executor.judged, executor.contract)),
    )


def claim_document(claim: Claim, space: AlignmentSpace, findings: Sequence[Finding]) -> dict[str, Json]:
    """The fields beside ``schema`` and ``status``. Alignments are listed as the knobs they align."""
    untried = claim.untried
    return {
        "level": claim.rung.level.value,
        "level_reason": claim.rung.reason,
        "minimal_sets": [list(names) for names in dict.fromkeys(tuple(sorted(item)) for item in claim.minimal_sets)],
        "aligned": None if claim.aligned is None else unstructure(claim.aligned),
        "word": None if claim.word is None else claim.word.value,
        "verified": claim.verified,
        "assumption": claim.assumption,
        "stopped": claim.stopped.value,
        "reason": _reason(claim, space),
        "still_different": list(claim.still_different),
        "unaligned": unstructure(space.unaligned),
        "executions": unstructure(claim.executions),
        "untried": None
        if untried is None
        else {
            "smaller": untried.smaller,
            "executed": untried.executed,
            "first": None if untried.first is None else sorted(untried.first),
        },
        "proof": [proof_entry(item, space) for item in claim.proof],
        "unsettled": named(claim.unsettled),
        "unsupported": named(claim.unsupported),
        "unjudged": named(claim.unjudged),
        "contradictions": [named(pair) for pair in claim.contradictions],
        "findings": [finding_document(unstructure(item)) for item in findings],
    }


def _reason(claim: Claim, space: AlignmentSpace) -> str:
    """Why the search ended, with what the reference that fails had to leave as it is."""
    if claim.stopped is Stopped.REFERENCE_FAILS and space.unaligned:
        return f"{claim.reason}; not aligned in it: {', '.join(space.unaligned)}"
    return claim.reason


def named(alignments: Iterable[Alignment]) -> list[Json]:
    """The knobs of each alignment."""
    return [sorted(item) for item in alignments]


def proof_entry(item: Observed, space: AlignmentSpace) -> dict[str, Json]:
    """One execution that the claim rests on."""
    return {
        "case": space.case(item.aligned).id,
        "aligned": sorted(item.aligned),
        "values": unstructure(aligned_values(item.aligned)),
        **outcome_fields(item.outcome),
    }


def outcome_fields(outcome: Outcome) -> dict[str, Json]:
    """An outcome in numbers. ``threshold`` is that of the production dtype's row."""
    return {
        "status": outcome.status.value,
        "within_baseline_row": outcome.within,
        "max_abs_dlogp": outcome.max_abs_dlogp,
        "threshold": outcome.threshold,
        "reason": outcome.reason,
    }


def ending(claim: Claim) -> tuple[str, ExitCode]:
    """Status and exit code: what kept the question from being judged, an alignment that passes, or that none does."""
    if claim.aligned is not None and claim.stopped is not Stopped.NO_VERDICT:
        return Status.PASS.value, ExitCode.PASS
    outcomes = [item.outcome for item in claim.proof]
    if claim.stopped is Stopped.NO_VERDICT:
        decisive = [outcome.status for outcome in outcomes if not outcome.status.judged]
    else:  # a case that fails without a number says why; any other is drift, on the row that the question is about
        failing = [outcome for outcome in outcomes if outcome.verdict is Verdict.FAIL]
        decisive = [outcome.status if outcome.within is None else Status.FAIL for outcome in failing]
    return (decisive[-1].value, decisive[-1].exit_code) if decisive else ("nothing", ExitCode.NOTHING)


def aligned_values(chosen: Mapping[str, Json]) -> dict[str, Json]:
    """Everything that an alignment sets, knob to value."""
    return {knob: value for sets in chosen.values() for knob, value in sets.items()}
