"""Which plugins are installed, from distribution metadata alone: no plugin is imported here."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from importlib.metadata import Distribution, EntryPoint, version

from attrs import evolve, frozen
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from xcfg.plugin.entries import Unreadable, entry_points, name_of, version_of
from xcfg.plugin.raised import said

GROUP = "xcfg"
CORE = "xcfg"
"""Name of core's own distribution; its plugins cannot be disabled."""

DISABLE_VARIABLE = "XCFG_DISABLE_PLUGINS"
_PREFIX = "xcfg-"
_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(\s*:\s*[^\W\d]\w*(\.[^\W\d]\w*)*)?")
_AGAIN = "install it again"


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
    found = [info for entry in entry_points(group=GROUP) if (info := _info(entry, refused, plugins))]
    found.sort(key=lambda info: (not _is_core(info.distribution), info.name, info.distribution))
    return tuple(_without_twins(found))


def _info(entry: EntryPoint | Unreadable, refused: AbstractSet[str], plugins: bool) -> PluginInfo | None:
    """What is known of one entry point; None where it belongs to no distribution."""
    if isinstance(entry, Unreadable):
        info = PluginInfo(
            name=entry.name,
            distribution=entry.distribution,
            version=entry.version,
            state=PluginState.INVALID,
            error=entry.error,
        )
    elif entry.dist is None:
        return None
    else:
        info = PluginInfo(
            name=entry.name,
            distribution=name_of(entry.dist),
            version=version_of(entry.dist),
            state=PluginState.AVAILABLE,
            target=entry.value,
        )
    if _is_core(info.distribution):
        return info
    if not plugins or not refused.isdisjoint(map(canonicalize_name, (info.name, info.distribution))):
        return evolve(info, state=PluginState.DISABLED, error="")
    if isinstance(entry, Unreadable):
        return info
    return info if entry.dist is None else _checked(info, entry.dist)


def _checked(info: PluginInfo, distribution: Distribution) -> PluginInfo:
    """With the state that the distribution's metadata gives it."""
    if canonicalize_name(info.name) != (expected := canonicalize_name(info.distribution).removeprefix(_PREFIX)):
        message = f"the entry point of {info.distribution} must be named {expected!r}, it is {info.name!r}"
        return evolve(info, state=PluginState.INVALID, error=message)
    if not _TARGET.fullmatch(info.target):
        message = f"the entry point of {info.distribution} must name a module, it is {info.target!r}"
        return evolve(info, state=PluginState.INVALID, error=message)
    state, message = _version_check(distribution, info)
    return evolve(info, state=state, error=message)


def _version_check(distribution: Distribution, info: PluginInfo) -> tuple[PluginState, str]:
    """Whether the installed core is in the range the plugin's distribution requires."""
    installed = version(CORE)
    try:
        lines = distribution.requires or []
    except Exception as error:  # importlib reads the file anew; it may be in no encoding
        return PluginState.INVALID, f"the metadata of {info.distribution} cannot be read: {said(error)}; {_AGAIN}"
    if not info.version:
        return PluginState.INVALID, f"the metadata of {info.distribution} has no version; {_AGAIN}"
    for line in lines:
        try:
            requirement = Requirement(line)
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        except ValueError as error:  # of the requirement, or of a marker that compares what cannot be compared
            return PluginState.INVALID, f"{info.distribution} has a malformed requirement {line!r}: {error}"
        if canonicalize_name(requirement.name) != CORE:
            continue
        if needed and not requirement.specifier.contains(installed, prereleases=True):
            needs = f"{info.distribution} {info.version} needs xcfg{requirement.specifier}"
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
