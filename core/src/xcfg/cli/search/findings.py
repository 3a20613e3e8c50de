"""What production says under the decision rules, and what the ablation profiles say where they were executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from xcfg.analyzer.ablation import read_ablation
from xcfg.analyzer.curves import Curves
from xcfg.analyzer.downstream import worse_downstream
from xcfg.analyzer.evidence import Evidence
from xcfg.analyzer.profile import SINGLES, AblationOutcome, ProfileCase
from xcfg.analyzer.rules import decide
from xcfg.cli.search.case_curves import CaseCurves
from xcfg.cli.search.outcome import outcome_of
from xcfg.model.json import Json
from xcfg.planner.profile_cases import profile_cases

if TYPE_CHECKING:
    from xcfg.model.case import Case
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.result import Finding
    from xcfg.model.tolerance import ToleranceContract
    from xcfg.planner.alignment_space import AlignmentSpace

NAMES = ("A0", "A1", "A2", "A3", "A4", "A5")
"""The profiles that the reading rules know."""


def findings(
    space: AlignmentSpace,
    judged: Mapping[str, CaseOutcome],
    contract: ToleranceContract,
    curves: CaseCurves | None = None,
    *,
    ablation: bool = True,
) -> tuple[Finding, ...]:
    """The findings of the production case and, with ``ablation``, those of reading the profiles A0 to A5."""
    curves = curves or CaseCurves()
    production = judged.get(space.production.id)
    found = () if production is None else decide(Evidence(comparison=production.comparison, curves=curves.production))
    return (*found, *(_read(space, judged, contract, curves) if ablation else ()))


def case_findings(outcomes: Iterable[CaseOutcome], curves: CaseCurves) -> tuple[Finding, ...]:
    """What the decision rules say of the other cases that have curves, each with the id of its case."""
    return tuple(
        evolve(finding, evidence={**finding.evidence, "case": item.case.id})
        for item in outcomes
        if item.case.id in curves.cases
        for finding in decide(Evidence(comparison=item.comparison, curves=curves.cases[item.case.id]))
    )


def _read(
    space: AlignmentSpace,
    judged: Mapping[str, CaseOutcome],
    contract: ToleranceContract,
    curves: CaseCurves,
) -> tuple[Finding, ...]:
    cases = _profile(space)
    reference = cases[ProfileCase.A0].id
    existing = [name for name, case in cases.items() if name not in SINGLES or case.id != reference]
    held = {name: curves.of(case.id, space.production.id) for name, case in cases.items()}
    outcomes = {
        name: evolve(
            _outcome(judged[case.id], cases, contract), worse_downstream=_worse(held[ProfileCase.A0], held[name])
        )
        for name, case in cases.items()
        if case.id in judged
    }
    if ProfileCase.A0 not in outcomes:
        return ()
    trained = curves.production
    flags = None if trained is None else trained.columns.get("collapse")
    collapsed = None if flags is None else bool(flags.any())
    return read_ablation(outcomes, profile=existing, collapsed=collapsed)


def _worse(reference: Curves | None, case: Curves | None) -> dict[str, Json]:
    return {} if reference is None or case is None else worse_downstream(reference, case)


def _profile(space: AlignmentSpace) -> dict[ProfileCase, Case]:
    """The case of each profile by the name that the reading rules give it."""
    catalog = space.judge.maker.catalog
    drafts = profile_cases(space.judge, {name: catalog.profile(name) for name in NAMES}).drafts
    return {ProfileCase(draft.name.replace("A4 ", "A4:")): space.judge.case(draft.own) for draft in drafts}


def _outcome(item: CaseOutcome, cases: Mapping[ProfileCase, Case], contract: ToleranceContract) -> AblationOutcome:
    outcome = outcome_of(item, contract)
    aligned = set(cases[ProfileCase.A0].changed)
    return AblationOutcome(
        status=outcome.status,
        within_baseline_row=outcome.within,
        max_abs_dlogp=outcome.max_abs_dlogp,
        threshold=item.comparison.threshold,
        reason=outcome.reason,
        knobs=sorted(aligned - set(item.case.changed)),
    )
