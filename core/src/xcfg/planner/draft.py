"""Cases before their sides are built."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.experiment import Checkpoint, Experiment, SideOverride, SideSpec
from xcfg.model.json import Json


@frozen(kw_only=True)
class Pick:
    """The scorer and the checkpoint of one side."""

    scorer: str
    checkpoint: Checkpoint


@frozen(kw_only=True)
class Draft:
    """What a case sets of its own over the baseline, by knob name, and what scores its sides.

    ``written`` marks the cases a user wrote down. What other cases set are changes, and they change nothing else.
    """

    name: str = ""
    own: Mapping[str, Json] = field(factory=dict)
    rollout: Pick
    training: Pick
    written: bool = False


def baseline_draft(experiment: Experiment, name: str) -> Draft:
    """The case in which nothing is changed."""
    shared = experiment.checkpoint
    return Draft(name=name, rollout=_pick(experiment.rollout, shared), training=_pick(experiment.training, shared))


def changed_draft(baseline: Draft, own: Mapping[str, Json], name: str = "") -> Draft:
    """The baseline with ``own`` over it."""
    return Draft(name=name, own=own, rollout=baseline.rollout, training=baseline.training)


def written_drafts(experiment: Experiment, baseline: Draft) -> list[Draft]:
    """The cases the experiment writes down, in its order."""
    return [
        Draft(
            name=spec.name,
            own=spec.set,
            rollout=_override(baseline.rollout, spec.rollout),
            training=_override(baseline.training, spec.training),
            written=True,
        )
        for spec in experiment.cases
    ]


def _pick(spec: SideSpec, shared: Checkpoint) -> Pick:
    return Pick(scorer=spec.scorer, checkpoint=spec.checkpoint or shared)


def _override(pick: Pick, change: SideOverride) -> Pick:
    return Pick(scorer=change.scorer or pick.scorer, checkpoint=change.checkpoint or pick.checkpoint)
