"""JSON documents of executed cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xcfg.comparator.worst import InContext
from xcfg.exitcodes import ExitCode, worst
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.model.outcome import CaseOutcome
from xcfg.model.provenance import KnobProvenance
from xcfg.model.result import Comparison, WorstToken
from xcfg.model.status import Status

if TYPE_CHECKING:
    from xcfg.model.plan import Plan
    from xcfg.report.text import TokenText


def case_document(outcome: CaseOutcome) -> dict[str, Json]:
    """One entry of ``cases`` in the ``run`` document."""
    comparison = outcome.comparison
    return {
        "id": outcome.case.id,
        "name": outcome.case.name,
        "status": comparison.status.value,
        "within_baseline_row": comparison.within_baseline_row,
        "axes": unstructure(outcome.case.axes),
        "changed": list(outcome.case.changed),
        "baseline_dtype": comparison.baseline_dtype,
        **comparison_document(comparison),
        "knobs": knob_documents(outcome),
    }


def comparison_document(comparison: Comparison) -> dict[str, Json]:
    """What a comparison found, beside its status."""
    return {
        "reason": comparison.reason,
        "dtype": comparison.dtype,
        "threshold": comparison.threshold,
        "limits": unstructure(comparison.limits),
        "clip_interval": unstructure(comparison.clip_interval),
        "assumed": list(comparison.assumed),
        "contract": unstructure(comparison.contract),
        "active_tokens": comparison.active_tokens,
        "metrics": unstructure(comparison.metrics),
        "worst": unstructure(comparison.worst),
        "per_rank": unstructure(comparison.per_rank),
        "findings": [finding_document(item) for item in unstructure(comparison.findings)],
    }


def in_context(item: InContext, text: TokenText | None = None) -> dict[str, Json]:
    """One of the worst tokens with its neighbours; with their texts where there is a tokenizer."""
    around = [_token(token, text) for token in item.around]
    return {**_token(item.token, text), "around": around}


def _token(token: WorstToken, text: TokenText | None) -> dict[str, Json]:
    fields = {**unstructure(token), "dlogp": token.train_logp - token.rollout_logp}
    return fields if text is None else {**fields, "text": text.of(token.token)}


def finding_document(finding: Json) -> Json:
    """A finding with the taxonomy's word ``class`` as its key."""
    fields = dict(finding)
    return {"class": fields.pop("source_class"), **fields}


def knob_documents(outcome: CaseOutcome) -> dict[str, Json]:
    """Requested, materialized and observed value of every knob; two-sided ones also by side.

    At the top of a two-sided knob stands the side that applied it, the rollout's where both did.
    """
    made: dict[str, Json] = {}
    for role, side in (("rollout", outcome.rollout), ("training", outcome.training)):
        for name, item in (side.provenance.knobs if side.provenance else {}).items():
            made.setdefault(name, {})[role] = item
    return {name: _knob(sides) for name, sides in sorted(made.items())}


def _knob(sides: dict[str, KnobProvenance]) -> Json:
    applied = [role for role, item in sides.items() if item.state.value != "inapplicable"]
    unsound = [role for role in applied if not sides[role].sound]
    head = (unsound or applied or list(sides))[0]
    found = {role: unstructure(item) for role, item in sides.items()}
    return {**found[head], "sides": found}


def counts(plan: Plan, outcomes: Sequence[CaseOutcome]) -> dict[str, int]:
    """Number of cases by status; ``rejected`` by a constraint or veto and ``not_run`` where there are such."""
    found: dict[str, int] = {}
    for outcome in outcomes:
        found[outcome.comparison.status.value] = found.get(outcome.comparison.status.value, 0) + 1
    judged = {outcome.case.id for outcome in outcomes}
    missing = [case for case in plan.cases if case.id not in judged]
    found["rejected"] = sum(case.rejected is not None for case in missing)
    found["not_run"] = sum(case.rejected is None for case in missing)
    return {name: number for name, number in found.items() if number}


def verdict(outcomes: Sequence[CaseOutcome], *, strict: bool = False) -> tuple[str, ExitCode]:
    """The top-level status and exit code of executed cases."""
    statuses = [outcome.comparison.status for outcome in outcomes]
    supported = [status for status in statuses if status is not Status.UNSUPPORTED]
    if not statuses:
        return "nothing", ExitCode.NOTHING
    counted = statuses if strict or not supported else supported
    code = worst(status.exit_code for status in counted)
    deciding = next(status for status in counted if status.exit_code is code)
    return deciding.value, code
