"""Calling the hooks of later phases plugin by plugin, so that one that fails is named and stops no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

import pluggy
from attrs import frozen

from xcfg.plugin.stdout import stdout_to_stderr

_BY_NAME = attrgetter("plugin_name")


@frozen(kw_only=True)
class Answer:
    """What one plugin returned, or the exception it raised."""

    plugin: str
    value: Any = None
    error: BaseException | None = None


def implementations(manager: pluggy.PluginManager, hook: str) -> list[pluggy.HookImpl]:
    """The implementations of a hook, in order of plugin name: the order of installation decides nothing."""
    return sorted(getattr(manager.hook, hook).get_hookimpls(), key=_BY_NAME)


def call(implementation: pluggy.HookImpl, arguments: Mapping[str, Any]) -> Any:
    """What the plugin returns, its output on standard output kept away from ours. Raises what it raises."""
    with stdout_to_stderr():
        return implementation.function(*[arguments[name] for name in implementation.argnames])


def ask(manager: pluggy.PluginManager, hook: str, **arguments: Any) -> Iterator[Answer]:
    """The answer of each plugin, in order of plugin name."""
    for implementation in implementations(manager, hook):
        try:
            value = call(implementation, arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            yield Answer(plugin=implementation.plugin_name, error=error)
        else:
            yield Answer(plugin=implementation.plugin_name, value=value)
