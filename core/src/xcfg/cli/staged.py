"""Profile A4, the pairs of source classes, is executed only where the single classes do not explain production."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from xcfg.cli.experiment import Selection, planned
from xcfg.planner.profiles import pairs_needed
from xcfg.runner.report import Engines, RunReport

if TYPE_CHECKING:
    from xcfg.model.outcome import CaseOutcome
    from xcfg.plugin.registry import Registry

PAIRS = "A4"
BEFORE = ("A0", "A1", "A2", "A3", "A5")
"""The profiles whose verdicts decide whether the pairs are worth their engines."""

CONDITIONAL = f"the cases of {PAIRS} alone are executed only where the other profiles' verdicts call for them"

SKIPPED = (
    f"{PAIRS} was left out: it tells something only where production fails although the reference and every single "
    f"class pass; `--profile {PAIRS}` alone executes it all the same"
)


def first_stage(selection: Selection) -> Selection | None:
    """The selection without the pairs, where it asks for all they depend on; None where there is one stage only.

    A slice or a filter picks cases by itself: what it leaves of the pairs is executed.
    """
    if selection.slice_name or selection.filters or not {PAIRS, *BEFORE} <= set(selection.profiles):
        return None
    return evolve(selection, profiles=tuple(name for name in selection.profiles if name != PAIRS))


def needs_pairs(selection: Selection, registry: Registry, outcomes: Sequence[CaseOutcome]) -> bool:
    """Whether the executed profiles call for the pairs. The question is asked on the baseline's row."""
    within = {item.case.id: item.comparison.within_baseline_row for item in outcomes}
    passed = {}
    for name in BEFORE:
        verdicts = [within.get(case.id) for case in planned(evolve(selection, profiles=(name,)), registry).cases]
        if None not in verdicts:
            passed[name] = all(verdicts)
    return pairs_needed(passed)


def together(first: RunReport, second: RunReport) -> RunReport:
    """The report of both stages as one execution; the second has all side runs of the first."""
    reused = first.engines.reused_from_disk + second.engines.reused_from_disk - first.engines.distinct
    return evolve(
        second,
        engines=Engines(
            distinct=second.engines.distinct,
            constructed=first.engines.constructed + second.engines.constructed,
            reused_from_disk=max(0, reused),
        ),
        wall_s=first.wall_s + second.wall_s,
        engine_s=first.engine_s + second.engine_s,
        refused=(*first.refused, *second.refused),
    )
