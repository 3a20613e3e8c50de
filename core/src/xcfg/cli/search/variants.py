"""Request-time settings that an engine scores while it is there: cheaper than building it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcfg.analyzer.search.decide import Purpose
from xcfg.analyzer.search.problem import AlignableKnob, Problem
from xcfg.errors import InvalidInput
from xcfg.model.knob import Lifecycle

if TYPE_CHECKING:
    from xcfg.analyzer.search.session import Trial
    from xcfg.model.case import Case
    from xcfg.planner.alignment_space import AlignmentSpace, Chosen


def variants(trial: Trial, space: AlignmentSpace, problem: Problem) -> tuple[tuple[Chosen, Case], ...]:
    """The cases to run beside production and beside the aligned reference, on the same engines.

    Each turns one request-time knob the other way, the last one all of them. No other trial has any: between them,
    production and the reference show what request-time knobs do.
    """
    if trial.purpose not in (Purpose.PRODUCTION, Purpose.REFERENCE):
        return ()
    request = [knob for knob in problem.knobs if knob.lifecycle is Lifecycle.REQUEST]
    ways = [[knob] for knob in request] + ([request] if len(request) > 1 else [])
    found = []
    for way in ways:
        chosen = _turned(trial.aligned, way)
        try:
            case = space.case(chosen)
        except InvalidInput:  # two assignments that contradict each other: no case
            continue
        if case.rejected is None:
            found.append((chosen, case))
    return tuple(found)


def _turned(aligned: Chosen, knobs: list[AlignableKnob]) -> Chosen:
    turned = dict(aligned)
    for knob in knobs:
        if turned.pop(knob.name, None) is None:
            turned[knob.name] = knob.candidates[0]
    return turned
