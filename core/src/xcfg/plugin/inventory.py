"""Which plugins are installed, from distribution metadata alone: no plugin is imported here."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from importlib.metadata import Distribution, EntryPoint, entry_points, version

from attrs import evolve, frozen
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

GROUP = "xcfg"
CORE = "xcfg"
"""Name of core's own distribution; its plugins cannot be disabled."""

DISABLE_VARIABLE = "XCFG_DISABLE_PLUGINS"
_PREFIX = "xcfg-"


class PluginState(StrEnum):
    """How far a plugin got. Metadata alone decides the first four."""

    AVAILABLE = "available"
    DISABLED = "disabled"
    VERSION_SKEW = "version-skew"
    INVALID = "invalid"
    LOADED = "loaded"
    FAILED = "failed"


@frozen(kw_only=True)
class PluginInfo:
    """One entry point of the group ``xcfg``. ``target`` is the module it names; ``error`` says why it is not usable."""

    name: str
    distribution: str
    version: str
    state: PluginState
    error: str = ""
    target: str = ""


def disabled_by_environment(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The plugin names of ``XCFG_DISABLE_PLUGINS``, a comma-separated list."""
    return tuple(name for part in environ.get(DISABLE_VARIABLE, "").split(",") if (name := part.strip()))


def inventory(disabled: Collection[str] = (), *, plugins: bool = True) -> tuple[PluginInfo, ...]:
    """Every installed plugin, core's own first, then by name.

    ``disabled`` holds plugin or distribution names; ``plugins=False`` disables every plugin but core's own. A name
    that is not installed is already as disabled as it can be and is no error.
    """
    refused = {canonicalize_name(name) for name in disabled}
    found = [_info(entry.dist, entry, refused, plugins) for entry in entry_points(group=GROUP) if entry.dist]
    found.sort(key=lambda info: (not _is_core(info.distribution), info.name, info.distribution))
    return tuple(_without_twins(found))


def _info(distribution: Distribution, entry: EntryPoint, refused: Collection[str], plugins: bool) -> PluginInfo:
    info = PluginInfo(
        name=entry.name,
        distribution=distribution.name,
        version=distribution.version,
        state=PluginState.AVAILABLE,
        target=entry.value,
    )
    if _is_core(info.distribution):
        return info
    names = {canonicalize_name(info.name), canonicalize_name(info.distribution)}
    if not plugins or not names.isdisjoint(refused):
        return evolve(info, state=PluginState.DISABLED)
    if canonicalize_name(info.name) != (expected := canonicalize_name(info.distribution).removeprefix(_PREFIX)):
        message = f"the entry point of {info.distribution} must be named {expected!r}, it is {info.name!r}"
        return evolve(info, state=PluginState.INVALID, error=message)
    state, message = _version_check(distribution)
    return evolve(info, state=state, error=message)


def _version_check(distribution: Distribution) -> tuple[PluginState, str]:
    """Whether the installed core is in the range the plugin's distribution requires."""
    installed = version(CORE)
    for line in distribution.requires or ():
        try:
            requirement = Requirement(line)
        except InvalidRequirement as error:
            return PluginState.INVALID, f"{distribution.name} has a malformed requirement {line!r}: {error}"
        if canonicalize_name(requirement.name) != CORE:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            needs = f"{distribution.name} {distribution.version} needs xcfg{requirement.specifier}"
            message = f"{needs}, installed is xcfg {installed}"
            return PluginState.VERSION_SKEW, message
    return PluginState.AVAILABLE, ""


def _without_twins(found: list[PluginInfo]) -> Iterator[PluginInfo]:
    """Two distributions under one plugin name are both unusable: which one would win is an accident."""
    owners: dict[str, list[str]] = defaultdict(list)
    for info in found:
        if info.state is not PluginState.DISABLED:
            owners[canonicalize_name(info.name)].append(info.distribution)
    for info in found:
        names = owners[canonicalize_name(info.name)]
        if len(names) > 1 and info.state is not PluginState.DISABLED and not _is_core(info.distribution):
            message = f"plugin name {info.name!r} is claimed by {' and '.join(sorted(names))}"
            yield evolve(info, state=PluginState.INVALID, error=message)
        else:
            yield info


def _is_core(distribution: str) -> bool:
    return canonicalize_name(distribution) == CORE
