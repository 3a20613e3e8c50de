"""From an engine group to the launch specification of its processes."""

from __future__ import annotations

import os
from pathlib import Path

from xcfg.errors import InvalidInput
from xcfg.model.case import SideConfig
from xcfg.model.json import Json
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Launch, Role, ScorerDescriptor
from xcfg.model.weights import WEIGHTS
from xcfg.plugin.inventory import PluginState
from xcfg.runner.builds import build_knobs, build_tasks
from xcfg.runner.checkpoints import resolve
from xcfg.runner.context import Context
from xcfg.runner.launch import KnobTask, LaunchSpec, OperatorTask, SampleTask, Step
from xcfg.runner.lookup import Lookup
from xcfg.runner.schedule import Group


def world_size(config: SideConfig, scorer: ScorerDescriptor) -> int:
    """Ranks to launch: the value of the scorer's world size knob for an elastic launch, one process otherwise.

    Raises InvalidInput where an elastic scorer has no number to go by.
    """
    if scorer.launch is Launch.SINGLE or not scorer.world_size_knob:
        return 1
    value = config.knobs.get(scorer.world_size_knob)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInput(
            f"{scorer.id} needs a number of ranks, not {value!r}",
            where=scorer.world_size_knob,
            hint=f"give {scorer.world_size_knob} a value of at least 1 in baseline",
        )
    return value


STAGING = "staging"
"""Where the ranks of a launch write, in its folder."""


def specify(group: Group, context: Context, launch: Path) -> LaunchSpec:
    """What the processes of the group's launch, whose folder is ``launch``, are told."""
    registry, config = context.registry, group.engine
    scorer = registry.scorer(config.scorer)
    sample = None
    if group.sample is not None:
        sample = SampleTask(folder=f"{STAGING}/tokens", prompts=context.prompts, source=group.sample)
    return LaunchSpec(
        role=config.role,
        scorer=scorer.id,
        target=scorer.target,
        launch=scorer.launch,
        world_size=world_size(config, scorer),
        requires=scorer.requires,
        install=scorer.install,
        checkpoint=str(resolve(context.root, config.checkpoint.path)),
        trust_remote_code=config.checkpoint.trust_remote_code,
        weights=_weights(config, context),
        engine=[task for task in _knobs(config, registry) if task.lifecycle is not Lifecycle.REQUEST and task.target],
        builds=build_tasks(config, registry),
        steps=[
            Step(
                folder=f"{STAGING}/step-{number:04d}",
                knobs=_knobs(side, registry),
                operators=_operators(side, registry),
            )
            for number, side in enumerate(group.sides)
        ],
        tokens="" if sample else os.path.relpath(context.store.tokens, launch),
        sample=sample,
        repeat=context.options.repeat,
        folder=STAGING,
        facts=[plugin.name for plugin in registry.plugins if plugin.state is PluginState.LOADED],
    )


def is_fake(config: SideConfig, registry: Lookup) -> bool:
    """Whether the scorer or an operator of a side is a fake."""
    backends = (registry.backend(name, choice.backend) for name, choice in config.operators.items())
    return registry.scorer(config.scorer).fake or any(backend.fake for backend in backends)


def _weights(config: SideConfig, context: Context) -> dict[str, Json]:
    """The digest of what is to be loaded, and the name it goes by where it is a copy of the checkpoint."""
    if config.role is not Role.ROLLOUT:
        return {}
    return {context.checkpoints[config.checkpoint.path].weights: config.knobs.get(WEIGHTS)}


def _knobs(config: SideConfig, registry: Lookup) -> tuple[KnobTask, ...]:
    materializers, chosen = registry.materializers(config.scorer), build_knobs(build_tasks(config, registry))
    return tuple(
        KnobTask(
            name=name,
            value=value,
            target=materializers[name].target,
            lifecycle=materializers[name].lifecycle,
            observable=materializers[name].observable,
        )
        for name, value in config.knobs.items()
        if name not in chosen
    )


def _operators(config: SideConfig, registry: Lookup) -> tuple[OperatorTask, ...]:
    return tuple(
        OperatorTask(
            operator=name,
            backend=choice.backend,
            target=registry.backend(name, choice.backend).target,
            options=choice.options,
        )
        for name, choice in config.operators.items()
    )
