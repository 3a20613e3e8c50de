"""The value of every knob in a case, whichever side carries it."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.experiment import Experiment
from xcfg.model.json import Json
from xcfg.model.kernel import LOGP_BACKEND, SELECTED_LOGPROB
from xcfg.model.knob import Knob
from xcfg.planner.draft import Draft

ROLLOUT_SCORER = "rollout.scorer"
TRAINING_SCORER = "training.scorer"
ROLLOUT_CHECKPOINT = "rollout.checkpoint"
TRAINING_CHECKPOINT = "training.checkpoint"
SIDE_DIMENSIONS = (ROLLOUT_SCORER, TRAINING_SCORER, ROLLOUT_CHECKPOINT, TRAINING_CHECKPOINT)
"""Coordinates that are no knobs."""


def baseline_values(experiment: Experiment, knobs: Mapping[str, Knob]) -> dict[str, Json]:
    """Knob defaults with the baseline over them.

    Where ``operators`` chooses the logprob kernel, ``logp.backend`` has its value, or none where the sides differ.
    """
    values = {name: knob.default for name, knob in knobs.items()} | dict(experiment.baseline)
    sides = experiment.operators.get(SELECTED_LOGPROB)
    chosen = {side.backend for side in (sides.rollout, sides.training) if side is not None} if sides else set()
    if len(chosen) == 1:
        values[LOGP_BACKEND] = chosen.pop()
    elif chosen:
        values.pop(LOGP_BACKEND, None)
    return values


def side_coordinates(draft: Draft) -> dict[str, Json]:
    """What scores the sides of a case."""
    return {
        ROLLOUT_SCORER: draft.rollout.scorer,
        TRAINING_SCORER: draft.training.scorer,
        ROLLOUT_CHECKPOINT: draft.rollout.checkpoint.label,
        TRAINING_CHECKPOINT: draft.training.checkpoint.label,
    }


def changed_names(draft: Draft, baseline: Draft, values: Mapping[str, Json]) -> tuple[str, ...]:
    """Names of what differs from the baseline, whose knobs have ``values``, sorted."""
    found = [name for name, value in draft.own.items() if not same(value, values.get(name))]
    if draft.rollout is not baseline.rollout or draft.training is not baseline.training:
        sides, usual = side_coordinates(draft), side_coordinates(baseline)
        found += [name for name in SIDE_DIMENSIONS if sides[name] != usual[name]]
    return tuple(sorted(found))


def same(left: Json, right: Json) -> bool:
    """Equality that tells 1 from true; 1 and 1.0 are one value, as in ids."""
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)
