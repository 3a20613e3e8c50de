"""Sides whose ranks run in another interpreter: it has to declare what this one plans with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from xcfg.errors import PluginError
from xcfg.plugin.describe import Description, read_description
from xcfg.plugin.installed import ask_interpreter
from xcfg.plugin.inventory import PluginState

if TYPE_CHECKING:
    from xcfg.model.case import SideConfig
    from xcfg.plugin.contribution import Contribution
    from xcfg.plugin.manager import LoadedPlugin
    from xcfg.plugin.registry import Registry


def check_interpreters(configs: Iterable[SideConfig], registry: Registry) -> None:
    """Hold the descriptors of each side's interpreter against those here, for the plugins whose code its ranks run.

    Raises EnvironmentFault where an interpreter cannot be asked, PluginError where a plugin is missing there, broken,
    or declares other scorers, materializers or kernel backends than here.
    """
    wanted: dict[str, set[str]] = {}
    for config in configs:
        if interpreter := registry.interpreter(config.role):
            wanted.setdefault(interpreter, set()).update(_owners(config, registry))
    for interpreter, distributions in sorted(wanted.items()):
        answer = ask_interpreter(interpreter, "xcfg.plugin.describe")
        there = _by_distribution(read_description(answer, where=interpreter))
        here = {plugin.info.distribution: plugin for plugin in registry.loaded}
        for distribution in sorted(distributions):
            _check(interpreter, here[distribution], there.get(distribution))


def _owners(config: SideConfig, registry: Registry) -> set[str]:
    """The distributions whose code the ranks of a side run."""
    materializers = registry.materializers(config.scorer)
    return {
        registry.owner("scorer", config.scorer),
        *(registry.owner("materializer", (name, config.scorer)) for name in config.knobs if name in materializers),
        *(registry.owner("backend", (operator, item.backend)) for operator, item in config.operators.items()),
    }


def _by_distribution(description: Description) -> dict[str, LoadedPlugin]:
    return {plugin.info.distribution: plugin for plugin in description.plugins}


def _check(interpreter: str, here: LoadedPlugin, there: LoadedPlugin | None) -> None:
    name, version = here.info.distribution, here.info.version
    if there is None:
        raise PluginError(
            f"{name} is not installed there", where=interpreter, hint=f"{interpreter} -m pip install {name}=={version}"
        )
    if there.info.state is not PluginState.LOADED:
        raise PluginError(f"{name} is not usable there: {there.info.error}", where=interpreter)
    if _declared(here.contribution) != _declared(there.contribution):
        raise PluginError(
            f"{name} {there.info.version} declares other scorers, materializers or kernel backends there than "
            f"{name} {version} does here",
            where=interpreter,
            hint="install the same version for both",
        )


def _declared(contribution: Contribution) -> tuple[object, ...]:
    return contribution.scorers, contribution.materializers, contribution.backends
