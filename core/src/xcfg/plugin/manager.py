"""Importing plugins, each under its own guard, and asking them for their descriptors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import Any

import pluggy
from attrs import evolve, frozen

from xcfg.model.codec import unknown
from xcfg.model.executor import ExecutorDescriptor
from xcfg.model.importer import FileFormatDescriptor, ImporterDescriptor
from xcfg.model.knob import Knob
from xcfg.model.profile import ProfileDescriptor
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, ScorerDescriptor
from xcfg.model.tolerance import ToleranceContract
from xcfg.plugin import hookspec
from xcfg.plugin.checks import faults
from xcfg.plugin.contribution import Contribution
from xcfg.plugin.inventory import GROUP, PluginInfo, PluginState
from xcfg.plugin.stdout import stdout_to_stderr

_PREFIX = "xcfg_"
_REGISTER: MappingProxyType[str, tuple[str, type]] = MappingProxyType(
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


class BrokenPlugin(Exception):
    """A plugin broke a rule of the host; the message is a sentence."""


@frozen(kw_only=True)
class LoadedPlugin:
    """A plugin after the attempt to load it: its descriptors, or as many as were read before it failed."""

    info: PluginInfo
    contribution: Contribution


def new_manager() -> pluggy.PluginManager:
    """A pluggy manager that knows xcfg's hooks and no plugin."""
    manager = pluggy.PluginManager(hookspec.PROJECT)
    manager.add_hookspecs(hookspec)
    return manager


def load_plugins(infos: Iterable[PluginInfo], manager: pluggy.PluginManager) -> tuple[LoadedPlugin, ...]:
    """Import every available plugin and register the sound ones with ``manager``. Raises nothing a plugin raised."""
    return tuple(_load(info, manager) for info in infos)


def _load(info: PluginInfo, manager: pluggy.PluginManager) -> LoadedPlugin:
    found: dict[str, Any] = {"plugin": info.name, "distribution": info.distribution}
    if info.state is not PluginState.AVAILABLE:
        return LoadedPlugin(info=info, contribution=Contribution(**found))
    try:
        with stdout_to_stderr():
            plugin = EntryPoint(name=info.name, value=info.target, group=GROUP).load()
            _collect(check_hooks(plugin), found)
        contribution = Contribution(**found)
        if wrong := list(faults(contribution)):
            raise BrokenPlugin("; ".join(wrong))
        manager.register(plugin, name=info.name)
    except (Exception, SystemExit) as error:
        failed = evolve(info, state=PluginState.FAILED, error=_said(error))
        return LoadedPlugin(info=failed, contribution=Contribution(**found))
    return LoadedPlugin(info=evolve(info, state=PluginState.LOADED), contribution=contribution)


def _said(error: BaseException) -> str:
    """The error in one sentence; the type's name where the text alone would not tell what happened."""
    return str(error) if isinstance(error, BrokenPlugin) else f"{type(error).__name__}: {error}"


def check_hooks(plugin: object) -> pluggy.PluginManager:
    """A manager that holds this plugin alone.

    Raises BrokenPlugin or pluggy's PluginValidationError on a hook that does not exist, lacks its decorator, wraps
    others or has an argument that the hook does not pass.
    """
    known = sorted(name for name in vars(hookspec) if name.startswith(_PREFIX))
    for name in dir(plugin):
        function = getattr(plugin, name)
        if not name.startswith(_PREFIX) or not inspect.isroutine(function):
            continue
        if name not in known:
            raise BrokenPlugin(unknown("hook", name, known))
        options = getattr(function, f"{hookspec.PROJECT}_impl", None)
        if options is None:
            raise BrokenPlugin(f"{name} lacks the decorator @hookimpl of xcfg.plugin")
        if options.get("hookwrapper") or options.get("wrapper"):
            raise BrokenPlugin(f"{name} is a hook wrapper: no plugin may change what another one says")
    probe = new_manager()
    probe.register(plugin)
    probe.check_pending()
    return probe


def _collect(alone: pluggy.PluginManager, found: dict[str, Any]) -> None:
    """Call the register hooks of one plugin; ``found`` keeps what was read before one of them failed."""
    for name, (section, kind) in _REGISTER.items():
        for implementation in getattr(alone.hook, name).get_hookimpls():
            found[section] = found.get(section, ()) + _descriptors(name, implementation.function, kind)


def _descriptors(name: str, function: Callable[[], Sequence[Any]], kind: type) -> tuple[Any, ...]:
    try:
        items = function()
    except (Exception, SystemExit) as error:
        raise BrokenPlugin(f"{name} raised {_said(error)}") from error
    if not isinstance(items, list | tuple):
        raise BrokenPlugin(f"{name} must return a list or tuple of {kind.__name__}, got {type(items).__name__}")
    if wrong := [item for item in items if not isinstance(item, kind)]:
        raise BrokenPlugin(f"{name} must return {kind.__name__} values, got {type(wrong[0]).__name__} {wrong[0]!r}")
    return tuple(items)
