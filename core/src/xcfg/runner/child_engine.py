"""Opening one engine: settings first, then the environment, and only then the engine's own code."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import Factory, define

from xcfg.errors import EnvironmentFault, UnsupportedError
from xcfg.model.capability import Unobservable, Unsupported
from xcfg.model.json import Json
from xcfg.model.knob import Lifecycle
from xcfg.plugin.protocols import Materializer, Scorer, ScorerSpec, Settings
from xcfg.plugin.target import resolve
from xcfg.runner.launch import KnobTask, LaunchSpec
from xcfg.runner.rank_record import KnobReading


@define
class Knobs:
    """The materializers of a launch and what they materialized."""

    spec: LaunchSpec
    made: dict[str, Materializer] = Factory(dict)
    materialized: dict[str, Json] = Factory(dict)

    def draft(self, task: KnobTask, settings: Settings) -> None:
        """Write a value into the draft. Raises UnsupportedError with the probe's reason where it cannot be applied."""
        try:
            self.materialized[task.name] = self._materializer(task).apply(task.name, task.value, settings)
        except Exception:
            self.probe(task, ())
            raise

    def probe(self, task: KnobTask, others: Iterable[KnobTask]) -> None:
        """Raise UnsupportedError where this machine or engine cannot apply the value."""
        knobs = {other.name: other.value for other in others}
        spec = {"role": self.spec.role.value, "checkpoint": self.spec.checkpoint, "knobs": knobs}
        found = self._materializer(task).probe(task.name, task.value, spec)
        if isinstance(found, Unsupported):
            raise UnsupportedError(f"{task.name} = {task.value}: {found.reason}", where=task.name)

    def read_back(self, task: KnobTask, live: Any) -> KnobReading:
        """The value in force. A reading that raises proves nothing, so it counts as unobservable with its error."""
        materialized = self.materialized.get(task.name)
        if not task.observable:
            return KnobReading(materialized=materialized, unobservable=Unobservable().reason)
        try:
            observed = self._materializer(task).read_back(task.name, live)
        except Exception as error:
            return KnobReading(materialized=materialized, unobservable=f"{type(error).__name__}: {error}")
        if isinstance(observed, Unobservable):
            return KnobReading(materialized=materialized, unobservable=observed.reason or Unobservable().reason)
        return KnobReading(materialized=materialized, observed=observed)

    def _materializer(self, task: KnobTask) -> Materializer:
        if task.target not in self.made:
            self.made[task.target] = resolve(task.target)()
        return self.made[task.target]


def prepare(spec: LaunchSpec, knobs: Knobs) -> Settings:
    """The settings the engine is opened with, its variables already in this process's environment.

    Values are drafted before any is probed: a probe may import the engine, and the variables must be set before.
    """
    missing = [name for name in spec.requires if find_spec(name) is None]
    if missing:
        raise EnvironmentFault(f"{', '.join(missing)} is not installed", where=spec.scorer, hint=spec.install)
    settings = Settings()
    ordered = sorted(spec.engine, key=lambda task: task.lifecycle is Lifecycle.ENGINE)
    for task in ordered:
        knobs.draft(task, settings)
    os.environ.update(settings.env)
    for task in ordered:
        knobs.probe(task, spec.engine)
    return settings


def open_scorer(spec: LaunchSpec, settings: Settings, rank: int) -> Scorer:
    """The scorer of this rank with its engine built."""
    scorer: Scorer = resolve(spec.target)()
    try:
        scorer.open(
            ScorerSpec(
                role=spec.role,
                checkpoint=Path(spec.checkpoint),
                trust_remote_code=spec.trust_remote_code,
                rank=rank,
                world_size=spec.world_size,
                engine=settings.engine,
            )
        )
    except BaseException:
        if spec.world_size == 1:  # with peers waiting in a collective, closing could wait for them
            scorer.close()
        raise
    return scorer
