"""From a gate to the cases of the experiment as it is now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xcfg.cli.gate.file import Gate, PinnedCase
from xcfg.errors import InvalidInput
from xcfg.model.codec import unstructure
from xcfg.runner.belongs import binding_of, checkpoints_of
from xcfg.runner.binding import difference
from xcfg.runner.schedule import baseline_configs, side_configs
from xcfg.runner.store import Store

if TYPE_CHECKING:
    from xcfg.model.case import Case
    from xcfg.model.plan import Plan
    from xcfg.planner.alignment_space import AlignmentSpace
    from xcfg.plugin.registry import Registry

_AGAIN = "the gate pins another experiment: search again with --gate, or give the one it was written for"


def pinned_cases(gate: Gate, space: AlignmentSpace, where: Path) -> dict[str, Case]:
    """The cases that the gate names, by id, in its order.

    Raises InvalidInput where the experiment no longer gives one of them: another knob to align, another value.
    """
    known = {choice.knob.name for choice in space.choices}
    if strange := sorted({name for case in gate.cases for name in case.sets} - known):
        raise InvalidInput(f"{strange[0]} is not a knob that this experiment can align", where=str(where), hint=_AGAIN)
    left = known - set(gate.aligned)
    if left != set(gate.still_different):
        named = sorted(left ^ set(gate.still_different))[0]
        verb = "is not" if named in left else "is"
        message = f"{named} {verb} among the differences that the gate leaves on"
        raise InvalidInput(message, where=str(where), hint=_AGAIN)
    return {case.id: _case(case, space, where) for case in gate.cases}


def _case(pinned: PinnedCase, space: AlignmentSpace, where: Path) -> Case:
    case = space.case(pinned.sets)
    if case.id != pinned.id:
        message = f"the {pinned.role} case was {pinned.id} and is {case.id} now: a value of the experiment changed"
        raise InvalidInput(message, where=str(where), hint=_AGAIN)
    return case


def identity_fault(gate: Gate, plan: Plan, registry: Registry, folder: Path) -> str:
    """In what the tokens, the checkpoint or the contract are others than the gate's; empty where they are the same.

    Raises InvalidInput for a checkpoint that is unreadable.
    """
    checkpoints = checkpoints_of(plan, (*side_configs(plan), *baseline_configs(plan)), Store(folder.absolute()))
    return difference(gate.identity, unstructure(binding_of(plan, registry, checkpoints)))
