"""What must hold of the hooks of one plugin, before any of them is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pluggy

from xcfg.model.codec import unknown
from xcfg.plugin import hookspec
from xcfg.plugin.raised import BrokenPlugin

_PREFIX = "xcfg_"


def new_manager() -> pluggy.PluginManager:
    """A pluggy manager that knows xcfg's hooks and no plugin."""
    manager = pluggy.PluginManager(hookspec.PROJECT)
    manager.add_hookspecs(hookspec)
    return manager


def check_hooks(plugin: object) -> pluggy.PluginManager:
    """A manager that holds this plugin alone.

    Raises BrokenPlugin on a hook that does not exist, lacks its decorator, wraps others or has an argument that it
    would not be passed.
    """
    known = sorted(name for name in vars(hookspec) if name.startswith(_PREFIX))
    for name in dir(plugin):
        function = getattr(plugin, name)
        if not inspect.isroutine(function):
            continue
        options = getattr(function, f"{hookspec.PROJECT}_impl", None)
        if options is None and not name.startswith(_PREFIX):
            continue
        hook = (options or {}).get("specname") or name
        if hook not in known:
            raise BrokenPlugin(unknown("hook", hook, known))
        if options is None:
            raise BrokenPlugin(f"{name} lacks the decorator @hookimpl of xcfg.plugin")
        if options.get("hookwrapper") or options.get("wrapper"):
            raise BrokenPlugin(f"{name} is a hook wrapper: no plugin may change what another one says")
        _check_arguments(name, function, list(inspect.signature(getattr(hookspec, hook)).parameters))
    alone = new_manager()
    alone.register(plugin)
    alone.check_pending()
    return alone


def _check_arguments(name: str, function: Callable[..., object], passed: list[str]) -> None:
    """Arguments are passed by name, and only those without a default: any other would silently keep its own value."""
    takes = f"it takes {', '.join(passed)} or fewer of them" if passed else "it takes no argument"
    for item in inspect.signature(function).parameters.values():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD, item.KEYWORD_ONLY):
            raise BrokenPlugin(f"{name} would not be passed its argument '{item}'; {takes}")
        if item.name not in passed:
            raise BrokenPlugin(f"{name} has an argument {item.name!r} that the hook does not pass; {takes}")
        if item.default is not item.empty:
            raise BrokenPlugin(f"{name} gives {item.name!r} a default, and so would never be passed it; leave it off")
