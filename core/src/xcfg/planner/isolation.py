"""Proof that a case changes what it declares and nothing else, on the configurations as built."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from xcfg.errors import XcfgError
from xcfg.model.case import Case, SideConfig
from xcfg.model.kernel import LOGP_BACKEND, SELECTED_LOGPROB
from xcfg.model.weights import WEIGHTS
from xcfg.planner.assignment import same

_ABSENT = object()


def differences(case: Case, baseline: Case) -> frozenset[str]:
    """Names of everything in which the built sides of two cases differ: knobs, operators, scorers, checkpoints."""
    return side_differences(case.rollout, baseline.rollout) | side_differences(case.training, baseline.training)


def side_differences(left: SideConfig, right: SideConfig) -> frozenset[str]:
    """As :func:`differences`, of two sides of one role.

    A knob that has a meaning on only one of them (a build-time knob, the other's kernel comes in one build) differs
    because of what took its meaning, which is named.
    """
    role = left.role.value
    found = _unequal(left.knobs, right.knobs) - (left.inapplicable.keys() ^ right.inapplicable.keys())
    if left.operators != right.operators:
        for name in _unequal(left.operators, right.operators):
            found.add(LOGP_BACKEND if name == SELECTED_LOGPROB else f"operators.{name}")
    if left.scorer != right.scorer:
        found.add(f"{role}.scorer")
    if WEIGHTS not in found and left.checkpoint != right.checkpoint:  # a copy is another checkpoint, and one change
        found.add(f"{role}.checkpoint")
    return frozenset(found)


def check_isolated(case: Case, baseline: Case, *declared: str, found: Collection[str] | None = None) -> None:
    """Raise an internal error unless the names ``declared`` are the differences (``found``, where they are known).

    A rejected case may lack some: what its scorers cannot apply is in no configuration.
    """
    found = differences(case, baseline) if found is None else found
    if len(found) == len(declared) and all(name in found for name in declared):
        return
    more, less = set(found).difference(declared), set(declared).difference(found)
    if more or (less and case.rejected is None):
        said = [f"also changes {', '.join(sorted(more))}"] * bool(more)
        said += [f"does not change {', '.join(sorted(less))}"] * bool(less)
        raise XcfgError(
            f"the case that declares to change {', '.join(declared) or 'nothing'} {' and '.join(said)}",
            where=f"case {case.id}",
            hint="this is a fault of the planner, please report it with the experiment",
        )


def _unequal(left: Mapping[str, Any], right: Mapping[str, Any]) -> set[str]:
    if left.keys() == right.keys():
        return {name for name, value in left.items() if value is not right[name] and not same(value, right[name])}
    return {name for name in {*left, *right} if not same(left.get(name, _ABSENT), right.get(name, _ABSENT))}
