"""What aligning each knob sets, where the scorers at hand can."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import Json, freeze
from xcfg.model.kernel import LOGP_BACKEND, SELECTED_LOGPROB
from xcfg.model.knob import Knob
from xcfg.planner.cases import CaseMaker

_STATE_IT = "say under `aligned` what aligning it sets"


@frozen(kw_only=True)
class Alignment:
    """``sets`` is what of the aligned assignment differs from production, knob to value."""

    knob: Knob
    sets: Mapping[str, Json] = field(converter=freeze)


@frozen(kw_only=True)
class Alignments:
    """``found`` by knob name; ``impossible`` the reason for each knob of the experiment that cannot be aligned."""

    found: Mapping[str, Alignment] = field(converter=freeze)
    impossible: Mapping[str, str] = field(converter=freeze)


def alignments(maker: CaseMaker) -> Alignments:
    """The alignment of every knob that has a meaning for a scorer of the baseline.

    The assignment is the experiment's, else the knob's own, else the other side's value. Knobs whose production value
    is the aligned one already need none.
    """
    found: dict[str, Alignment] = {}
    impossible: dict[str, str] = {}
    for name, knob in sorted(maker.knobs.items()):
        if not maker.sides.means(name):
            if name in maker.experiment.aligned:
                impossible[name] = "it has no meaning for the scorers of the baseline"
            continue
        assignment = _declared(knob, maker)
        refused = ""
        if name == LOGP_BACKEND and SELECTED_LOGPROB in maker.experiment.operators:
            assignment, refused = {}, f"operators.{SELECTED_LOGPROB} chooses it"
        elif assignment is None:
            assignment, refused = _other_side(name, maker)
        sets = maker.changes(assignment)
        refused = refused or "; ".join(maker.refused(sets, sets).values())
        if refused:
            impossible[name] = refused
        elif sets:
            found[name] = Alignment(knob=knob, sets=sets)
    return Alignments(found=found, impossible=impossible)


def named(maker: CaseMaker) -> frozenset[str]:
    """The knobs that an experiment speaks of."""
    experiment = maker.experiment
    linked = {name for table in experiment.linked.values() for name in table}
    return frozenset({*experiment.baseline, *experiment.axes, *linked, *experiment.fixed, *experiment.aligned})


def _declared(knob: Knob, maker: CaseMaker) -> Mapping[str, Json] | None:
    return maker.experiment.aligned.get(knob.name) or knob.aligned or None


def _other_side(name: str, maker: CaseMaker) -> tuple[Mapping[str, Json], str]:
    """The assignment of a knob that declares none, or why there is none.

    The rollout side takes the training side's value or, where its scorer cannot, gives its own; a value that the engine
    chooses itself is not known before it has run.
    """
    side, _, rest = name.partition(".")
    other = {"rollout": f"training.{rest}", "training": f"rollout.{rest}"}.get(side, "")
    spoken = named(maker) & {name, other}
    if other not in maker.knobs:
        return {}, f"no aligned value is declared; {_STATE_IT}" if spoken else ""
    if _declared(maker.knobs[other], maker) is not None:
        return {}, ""
    mine, theirs = maker.values.get(name), maker.values.get(other)
    if mine is None or theirs is None:
        unknown = name if mine is None else other
        open_choice = spoken and (mine is None) is not (theirs is None)
        return {}, f"{unknown} is left to the engine, which tells only once it runs; {_STATE_IT}" if open_choice else ""
    if side == "training":
        return {}, ""
    ways = [(name, theirs), (other, mine)]
    possible = [{knob: value} for knob, value in ways if _can(knob, value, maker)]
    return (possible[0], "") if possible else ({}, f"neither side can take the value of the other; {_STATE_IT}")


def _can(name: str, value: Json, maker: CaseMaker) -> bool:
    try:
        maker.knobs[name].domain.normalise(value)
    except ValueError:
        return False
    return not maker.refused({name: value}, {name})
