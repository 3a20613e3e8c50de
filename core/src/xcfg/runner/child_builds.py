"""The artifacts of kernels that a child process may load: one for each operator, for as long as the process lives.

A step names none, so nothing in a process can ask for a second build after the first: a library that was loaded stays,
and what it did to the process (gcc's ``-ffast-math`` makes the loading thread flush denormals to zero) stays as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from attrs import field, frozen

from xcfg.errors import ArtifactError
from xcfg.model.json import Json
from xcfg.model.kernel import BoundKernel, KernelBuild
from xcfg.plugin.checkpoint import file_digest
from xcfg.runner.launch import BuildTask
from xcfg.runner.rank_record import KnobReading


@frozen(kw_only=True)
class Builds:
    """The tasks of the launch, and the path of each operator's artifact."""

    tasks: tuple[BuildTask, ...]
    paths: Mapping[str, str] = field(factory=dict)

    @classmethod
    def checked(cls, tasks: tuple[BuildTask, ...]) -> Builds:
        """Find every artifact and hash it, loading nothing. Raises ArtifactError where one is not what was planned."""
        return cls(tasks=tasks, paths={task.operator: str(_checked(task)) for task in tasks})

    def readings(self, operators: Mapping[str, BoundKernel]) -> dict[str, KnobReading]:
        """Each knob that chose a build, read from the digests of what the operators were seen to have loaded."""
        found: dict[str, list[KnobReading]] = {}
        for task in self.tasks:
            for name in task.build.knobs:
                found.setdefault(name, []).append(_reading(task, name, operators.get(task.operator)))
        return {name: _together(readings) for name, readings in found.items()}


def _checked(task: BuildTask) -> Path:
    path = _find(task.build.artifact)
    what = f"the build of {task.backend} for {task.operator}"
    if path is None:
        raise ArtifactError(f"{what} is not installed", where=task.build.artifact, hint="install its plugin again")
    digest = file_digest(path)
    if digest != task.build.fingerprint:
        message = f"{what} has the SHA-256 {digest}, its descriptor says {task.build.fingerprint}; it was not loaded"
        raise ArtifactError(message, where=str(path), hint="install its plugin again")
    return path


def _find(artifact: str) -> Path | None:
    """The file ``package:path`` names, found without importing the package."""
    package, _, inside = artifact.partition(":")
    spec = find_spec(package)
    places = () if spec is None else spec.submodule_search_locations or ()
    return next((path for place in places if (path := Path(place) / inside).is_file()), None)


def _reading(task: BuildTask, name: str, bound: BoundKernel | None) -> KnobReading:
    materialized = task.build.knobs[name]
    if bound is None:
        return KnobReading(materialized=materialized, unobservable="no backend was called")
    loaded = _loaded(task.builds, bound.build)
    if loaded is None:
        said = f"the loaded build {bound.build or 'without a digest'} is none of those of {task.backend}"
        return KnobReading(materialized=materialized, unobservable=said)
    return KnobReading(materialized=materialized, observed=loaded.knobs[name])


def _loaded(builds: Iterable[KernelBuild], digest: str) -> KernelBuild | None:
    return next((build for build in builds if build.fingerprint == digest), None)


def _together(readings: list[KnobReading]) -> KnobReading:
    """One reading for several operators, which may have been built otherwise where nothing was asked for."""
    blind = [reading for reading in readings if reading.unobservable]
    if blind or all(reading == readings[0] for reading in readings):
        return (blind or readings)[0]
    materialized: list[Json] = [reading.materialized for reading in readings]
    observed: list[Json] = [reading.observed for reading in readings]
    return KnobReading(materialized=materialized, observed=observed)
