"""The JSON document of ``search`` and ``explain``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from xcfg.analyzer.search.claim import Claim, Stopped
from xcfg.cli.documents import finding_document
from xcfg.exitcodes import ExitCode
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.model.status import Status

if TYPE_CHECKING:
    from xcfg.analyzer.search.outcome import Observed
    from xcfg.analyzer.search.problem import Alignment
    from xcfg.model.result import Finding
    from xcfg.planner.alignment_space import AlignmentSpace


def claim_document(claim: Claim, space: AlignmentSpace, findings: Sequence[Finding]) -> dict[str, Json]:
    """The fields beside ``schema`` and ``status``. Alignments are listed as the knobs they align."""
    untried = claim.untried
    return {
        "level": claim.rung.level.value,
        "level_reason": claim.rung.reason,
        "minimal_sets": named(claim.minimal_sets),
        "aligned": None if claim.aligned is None else unstructure(claim.aligned),
        "word": None if claim.word is None else claim.word.value,
        "verified": claim.verified,
        "assumption": claim.assumption,
        "stopped": claim.stopped.value,
        "reason": claim.reason,
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


def named(alignments: Iterable[Alignment]) -> list[Json]:
    """The knobs of each alignment."""
    return [sorted(item) for item in alignments]


def proof_entry(item: Observed, space: AlignmentSpace) -> dict[str, Json]:
    """One execution that the claim rests on. ``threshold`` is that of the production dtype's row."""
    outcome = item.outcome
    return {
        "case": space.case(item.aligned).id,
        "aligned": sorted(item.aligned),
        "status": outcome.status.value,
        "within_baseline_row": outcome.within,
        "max_abs_dlogp": outcome.max_abs_dlogp,
        "threshold": outcome.threshold,
        "reason": outcome.reason,
    }


def ending(claim: Claim) -> tuple[str, ExitCode]:
    """Status and exit code: an alignment that passes was found, none passes, or what kept it from being judged."""
    if claim.aligned is not None:
        return Status.PASS.value, ExitCode.PASS
    if claim.stopped in (Stopped.REFERENCE_FAILS, Stopped.NOTHING_PASSES, Stopped.BUDGET, Stopped.UNFINISHED):
        return (Status.FAIL.value, ExitCode.DRIFT) if claim.proof else ("nothing", ExitCode.NOTHING)
    broken = [item.outcome.status for item in claim.proof if not item.outcome.status.judged]
    return (broken[-1].value, broken[-1].exit_code) if broken else ("nothing", ExitCode.NOTHING)


def aligned_values(chosen: Mapping[str, Json]) -> dict[str, Json]:
    """Everything that an alignment sets, knob to value."""
    return {knob: value for sets in chosen.values() for knob, value in sets.items()}
