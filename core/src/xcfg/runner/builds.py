"""The prebuilt artifacts that a side's kernels are loaded from: chosen here, in the parent, once for each launch."""

from __future__ import annotations

from collections.abc import Collection

from xcfg.errors import PluginError
from xcfg.model.case import SideConfig
from xcfg.model.kernel import fitting_build
from xcfg.runner.launch import BuildTask
from xcfg.runner.lookup import Lookup


def build_tasks(config: SideConfig, registry: Lookup) -> tuple[BuildTask, ...]:
    """One task for each operator of a side whose backend comes in builds.

    Raises PluginError where no build has the values that the configuration asks for.
    """
    found = []
    for operator, choice in sorted(config.operators.items()):
        builds = registry.backend(operator, choice.backend).builds
        if not builds:
            continue
        build = fitting_build(builds, config.knobs)
        if build is None:
            message = f"backend {choice.backend!r} of {operator} has no build with the values of this plan"
            raise PluginError(message, where=operator, hint="plan again: the backend was another one then")
        found.append(BuildTask(operator=operator, backend=choice.backend, build=build, builds=builds))
    return tuple(found)


def build_knobs(tasks: Collection[BuildTask]) -> frozenset[str]:
    """The knobs that chose the builds; no materializer applies them."""
    return frozenset(name for task in tasks for name in task.build.knobs)
