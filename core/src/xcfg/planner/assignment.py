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


def coordinates(draft: Draft, baseline: Mapping[str, Json]) -> dict[str, Json]:
    """Every knob's value in a case, and what scores its sides."""
    return {
        **baseline,
        **draft.own,
        ROLLOUT_SCORER: draft.rollout.scorer,
        TRAINING_SCORER: draft.training.scorer,
        ROLLOUT_CHECKPOINT: draft.rollout.checkpoint.label,
        TRAINING_CHECKPOINT: draft.training.checkpoint.label,
    }


def changed_names(values: Mapping[str, Json], baseline: Mapping[str, Json]) -> tuple[str, ...]:
    """Names whose value differs, sorted."""
    names = {*values, *baseline}
    return tuple(sorted(name for name in names if not same(values.get(name), baseline.get(name))))


def same(left: Json, right: Json) -> bool:
    """Equality that tells 1 from true; 1 and 1.0 are one value, as in ids."""
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)
