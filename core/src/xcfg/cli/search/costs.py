"""What each passing alignment costs, relative to production."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xcfg.analyzer.minimal import Executed, pareto_front
from xcfg.cli.search.outcome import Cost, cost_of, outcome_of
from xcfg.model.json import Json

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome
    from xcfg.model.tolerance import ToleranceContract
    from xcfg.planner.alignment_space import AlignmentSpace


def priced(space: AlignmentSpace, judged: Mapping[str, CaseOutcome], contract: ToleranceContract) -> list[Executed]:
    """The judged cases of the space with their cost; no slowdown where a time was not recorded."""
    base = judged.get(space.production.id)
    usual = Cost(seconds=None, memory=None) if base is None else cost_of(base)
    found = []
    for item in judged.values():
        chosen = space.chosen(item.case)
        if chosen is not None and item.case.rejected is None:
            cost = cost_of(item)
            known = cost.seconds is not None and usual.seconds
            found.append(
                Executed(
                    case=item.case.id,
                    aligned=chosen,
                    within=outcome_of(item, contract).within,
                    slowdown=cost.seconds / usual.seconds if known and cost.seconds and usual.seconds else None,
                    memory=cost.memory,
                )
            )
    return found


def cost_documents(cases: list[Executed]) -> list[dict[str, Json]]:
    """The passing cases that no other one beats in knobs aligned, slowdown and memory at once."""
    return [cost_document(case) for case in pareto_front(cases)]


def cost_document(case: Executed) -> dict[str, Json]:
    """One case: ``slowdown`` is its time of scoring over production's, ``memory`` in bytes."""
    return {
        "case": case.case,
        "aligned": sorted(case.aligned),
        "slowdown": case.slowdown,
        "memory": case.memory,
    }
