"""From the choices of an experiment to the problem that is searched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xcfg.analyzer.search.problem import AlignableKnob, Problem
from xcfg.errors import InvalidInput
from xcfg.model.knob import Lifecycle, SourceClass
from xcfg.model.scorer import Role
from xcfg.planner.alignment_space import AlignmentSpace, Choice
from xcfg.runner.schedule import engine_key

if TYPE_CHECKING:
    from xcfg.model.case import Case, SideConfig
    from xcfg.plugin.registry import Registry

SUSPICION: Mapping[SourceClass, float] = {
    SourceClass.ARITHMETIC: 4.0,
    SourceClass.REPRESENTATION: 3.0,
    SourceClass.REDUCTION: 2.0,
    SourceClass.EXECUTION: 1.0,
    SourceClass.LOGICAL: 0.0,
}
"""Which classes are tried first as causes. It orders the work and enters no claim."""


def problem_of(space: AlignmentSpace, registry: Registry) -> Problem:
    """The problem of a space. Raises InvalidInput where no knob can be aligned."""
    if not space.choices:
        reasons = "; ".join(f"{name}: {why}" for name, why in space.unaligned.items())
        raise InvalidInput(
            "production differs from its aligned reference in no knob",
            where="EXPERIMENT",
            hint=reasons or "give the production values under `baseline`, and under `aligned` what aligning sets",
        )
    return Problem(knobs=[_alignable(choice, space, registry) for choice in space.choices])


def _alignable(choice: Choice, space: AlignmentSpace, registry: Registry) -> AlignableKnob:
    knob = choice.knob
    cases = [space.case({knob.name: sets}) for sets in choice.candidates]
    sides = frozenset(role for role in Role for case in cases if _side(case, role) != _side(space.production, role))
    return AlignableKnob(
        name=knob.name,
        candidates=choice.candidates,
        sides=sides,
        lifecycle=Lifecycle.REQUEST if all(_on_one_engine(case, space, registry) for case in cases) else knob.lifecycle,
        semantic_scope=knob.semantic_scope,
        intrusion=knob.intrusion,
        maintenance=knob.maintenance,
        suspicion=SUSPICION[knob.source_class],
        logical=knob.source_class is SourceClass.LOGICAL,
    )


def _on_one_engine(case: Case, space: AlignmentSpace, registry: Registry) -> bool:
    """Whether the engines that score production score this case too."""
    production = space.production
    if case.rejected is not None or production.rejected is not None:
        return False
    return all(
        engine_key(_side(case, role), registry) == engine_key(_side(production, role), registry) for role in Role
    )


def _side(case: Case, role: Role) -> SideConfig:
    return case.rollout if role is Role.ROLLOUT else case.training
