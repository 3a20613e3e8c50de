"""Proof that a case which claims to change one knob changes that knob alone, on the configurations as built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcfg.errors import XcfgError
from xcfg.model.case import Case, SideConfig
from xcfg.model.kernel import LOGP_BACKEND, SELECTED_LOGPROB
from xcfg.planner.assignment import same

_ABSENT = object()


def differences(case: Case, baseline: Case) -> frozenset[str]:
    """Names of everything in which the built sides of two cases differ: knobs, operators, scorers, checkpoints."""
    pairs = ((case.rollout, baseline.rollout), (case.training, baseline.training))
    return frozenset(name for left, right in pairs for name in _side_differences(left, right))


def check_isolated(case: Case, baseline: Case, axis: str) -> None:
    """Raise an internal error unless ``axis`` is the one difference, or there is none."""
    found = differences(case, baseline)
    if found - {axis}:
        others = ", ".join(sorted(found - {axis}))
        raise XcfgError(
            f"the case that changes {axis} alone also changes {others}",
            where=f"case {case.id}",
            hint="this is a fault of the planner, please report it with the experiment",
        )


def _side_differences(left: SideConfig, right: SideConfig) -> set[str]:
    role = left.role.value
    found = _unequal(left.knobs, right.knobs)
    for name in _unequal(left.operators, right.operators):
        found.add(LOGP_BACKEND if name == SELECTED_LOGPROB else f"operators.{name}")
    for part in ("scorer", "checkpoint"):
        if getattr(left, part) != getattr(right, part):
            found.add(f"{role}.{part}")
    return found


def _unequal(left: Mapping[str, Any], right: Mapping[str, Any]) -> set[str]:
    return {name for name in {*left, *right} if not same(left.get(name, _ABSENT), right.get(name, _ABSENT))}
