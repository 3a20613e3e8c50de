"""The error for an id that no usable plugin registered: what would bring it, or what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence

from xcfg.errors import InvalidInput, PluginError, XcfgError
from xcfg.model.codec import unknown
from xcfg.plugin.contribution import Key, describe_key
from xcfg.plugin.index import Index
from xcfg.plugin.inventory import CORE, PluginInfo, PluginState
from xcfg.plugin.known import bringing_distribution

_TYPED = ("knob", "profile", "slice")
"""Kinds whose ids are words of an experiment or a command line: an unknown one is the user's to mend."""


def missing(key: Key, index: Index, plugins: Sequence[PluginInfo]) -> XcfgError:
    """The error to raise for a key that is not owned."""
    if key in index.broken:
        return PluginError(index.broken[key], where=describe_key(key), hint=_without(key, index, plugins))
    wanted = bringing_distribution(key)
    likely = next((info for info in plugins if info.distribution == wanted or _is_named_after(key, info)), None)
    if likely is not None and likely.state is PluginState.DISABLED:
        hint = "take it out of -p no:NAME, XCFG_DISABLE_PLUGINS or --no-plugins"
        return PluginError(f"{likely.distribution}, which brings it, is disabled", where=describe_key(key), hint=hint)
    if likely is not None and likely.error:
        message = f"{likely.distribution} is not usable: {likely.error}"
        return PluginError(message, where=describe_key(key), hint="xcfg plugins check tells of every plugin")
    if likely is None and wanted:
        message = f"{describe_key(key)} is not installed: {wanted} brings it"
        return PluginError(message, hint=f"python -m pip install {wanted}")
    names = sorted(name for kind, name in index.owned if kind == key[0])
    broken = [f"{info.distribution} ({info.error})" for info in plugins if info.error]
    hint = f"not loaded: {', '.join(broken)}" if broken else ""
    kind = InvalidInput if key[0] in _TYPED else PluginError
    return kind(unknown(key[0], key[1], names), hint=hint)


def _is_named_after(key: Key, info: PluginInfo) -> bool:
    """Whether the id is the plugin's own name or begins with it, as its knobs must."""
    names = (info.name, info.distribution.removeprefix("xcfg-"))
    return key[1].partition(".")[0] in (*names, *(name.replace("-", "_") for name in names))


def _without(key: Key, index: Index, plugins: Sequence[PluginInfo]) -> str:
    """How to go on without one of the plugins that claim the id."""
    clash = index.clashes.get(key, ())
    named = [info.name for info in plugins if info.distribution in clash and info.distribution != CORE]
    return f"leave one out with {' or '.join(f'-p no:{name}' for name in named)}" if named else ""
