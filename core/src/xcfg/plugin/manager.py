"""Importing plugins, each under its own guard, and asking them for their descriptors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import Any

import pluggy
from attrs import evolve, frozen

from xcfg.model.executor import ExecutorDescriptor
from xcfg.model.importer import FileFormatDescriptor, ImporterDescriptor
from xcfg.model.knob import Knob
from xcfg.model.profile import ProfileDescriptor
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, ScorerDescriptor
from xcfg.model.tolerance import ToleranceContract
from xcfg.plugin.check_hooks import check_hooks, new_manager
from xcfg.plugin.checks import faults
from xcfg.plugin.contribution import Contribution
from xcfg.plugin.inventory import GROUP, PluginInfo, PluginState
from xcfg.plugin.raised import BrokenPlugin, said, shown
from xcfg.plugin.stdout import stdout_to_stderr
from xcfg.plugin.typed import misfits

__all__ = ["REGISTER", "LoadedPlugin", "Watch", "check_hooks", "load_plugins", "new_manager"]

REGISTER: MappingProxyType[str, tuple[str, type]] = MappingProxyType(
    {
        "xcfg_knobs": ("knobs", Knob),
        "xcfg_scorers": ("scorers", ScorerDescriptor),
        "xcfg_materializers": ("materializers", MaterializerDescriptor),
        "xcfg_kernel_backends": ("backends", KernelBackendDescriptor),
        "xcfg_profiles": ("profiles", ProfileDescriptor),
        "xcfg_tolerance_contracts": ("contracts", ToleranceContract),
        "xcfg_importers": ("importers", ImporterDescriptor),
        "xcfg_file_formats": ("file_formats", FileFormatDescriptor),
        "xcfg_executors": ("executors", ExecutorDescriptor),
    }
)


@frozen(kw_only=True)
class LoadedPlugin:
    """A plugin after the attempt to load it: its descriptors, or as many as were read before it failed."""

    info: PluginInfo
    contribution: Contribution


class Watch:
    """Is told while plugins are loaded. This one looks away; :mod:`xcfg.plugin.trace` takes the time."""

    def importing(self, info: PluginInfo) -> AbstractContextManager[None]:
        """Entered while the plugin's module is imported."""
        return nullcontext()

    def asking(self, info: PluginInfo, hook: str) -> AbstractContextManager[None]:
        """Entered while one of the plugin's hooks is called."""
        return nullcontext()

    def given(self, info: PluginInfo, hook: str, number: int) -> None:
        """How many descriptors the hook gave, all of them sound in type."""

    def found(self, info: PluginInfo, hooks: Sequence[str]) -> None:
        """The hooks that the plugin implements, before any of them is called."""


def load_plugins(
    infos: Iterable[PluginInfo], manager: pluggy.PluginManager, watch: Watch | None = None
) -> tuple[LoadedPlugin, ...]:
    """Import every available plugin and register the sound ones with ``manager``. Raises nothing a plugin raised."""
    return tuple(_load(info, manager, watch or Watch()) for info in infos)


def _load(info: PluginInfo, manager: pluggy.PluginManager, watch: Watch) -> LoadedPlugin:
    found: dict[str, Any] = {"plugin": info.name, "distribution": info.distribution}
    if info.state is not PluginState.AVAILABLE:
        return LoadedPlugin(info=info, contribution=Contribution(**found))
    try:
        with stdout_to_stderr():
            with watch.importing(info):
                plugin = EntryPoint(name=info.name, value=info.target, group=GROUP).load()
            alone = check_hooks(plugin)
            watch.found(info, [caller.name for caller in alone.get_hookcallers(plugin) or ()])
            _collect(alone, found, info, watch)
        contribution = Contribution(**found)
        if wrong := list(faults(contribution)):
            raise BrokenPlugin("; ".join(wrong))
        manager.register(plugin, name=info.name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        failed = evolve(info, state=PluginState.FAILED, error=said(error))
        return LoadedPlugin(info=failed, contribution=Contribution(**found))
    return LoadedPlugin(info=evolve(info, state=PluginState.LOADED), contribution=contribution)


def _collect(alone: pluggy.PluginManager, found: dict[str, Any], info: PluginInfo, watch: Watch) -> None:
    """Call the register hooks of one plugin; ``found`` keeps what was read before one of them failed."""
    for name, (section, kind) in REGISTER.items():
        for implementation in getattr(alone.hook, name).get_hookimpls():
            with watch.asking(info, name):
                items = _asked(name, implementation.function)
            found[section] = found.get(section, ()) + _descriptors(name, items, kind)
            watch.given(info, name, len(items))


def _asked(name: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BrokenPlugin(f"{name} raised {said(error)}") from error


def _descriptors(name: str, items: Any, kind: type) -> tuple[Any, ...]:
    if not isinstance(items, list | tuple):
        raise BrokenPlugin(f"{name} must return a list or tuple of {kind.__name__}, got {type(items).__name__}")
    for index, item in enumerate(items):
        if not isinstance(item, kind):
            raise BrokenPlugin(f"{name} must return {kind.__name__} values, got {shown(item)}")
        if wrong := list(misfits(item)):
            raise BrokenPlugin(f"{kind.__name__} {index} of {name}: {'; '.join(wrong)}")
    return tuple(items)
