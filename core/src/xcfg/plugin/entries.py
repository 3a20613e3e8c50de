"""Entry points of the installed distributions, read so that one with broken metadata hides no other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path

from attrs import frozen
from packaging.utils import canonicalize_name

from xcfg.plugin.raised import said

_OURS = "xcfg-"
"""Whose unreadable entry points are told of: those of other distributions are no matter of this host."""


@frozen(kw_only=True)
class Unreadable:
    """In place of the entry points of a plugin's distribution: ``name`` is the plugin's, ``error`` says why."""

    name: str
    distribution: str
    version: str
    error: str


def entry_points(*, group: str) -> Iterator[EntryPoint | Unreadable]:
    """The entry points of a group. The first distribution of a name on the path counts, as for an import.

    ``importlib.metadata.entry_points`` raises where one distribution's file is broken, whoever asks for what. Where
    something has imported the backport ``importlib_metadata``, they are of its class and not of the standard library's.
    """
    seen = set()
    for distribution in distributions():
        if (name := _folder_name(distribution)) in seen:
            continue
        seen.add(name)
        try:
            found = distribution.entry_points.select(group=group)
        except Exception as error:  # of its parser, which has no type for it, or of the file's encoding
            if name.startswith(_OURS):
                yield _unreadable(name, distribution, error)
        else:
            yield from found


def _unreadable(name: str, distribution: Distribution, error: Exception) -> Unreadable:
    return Unreadable(
        name=name.removeprefix(_OURS),
        distribution=name_of(distribution),
        version=version_of(distribution),
        error=f"its entry_points.txt cannot be read: {said(error)}; install it again",
    )


def name_of(distribution: Distribution) -> str:
    """The distribution's name; where its metadata has none, that of the folder it is recorded in."""
    return _field(distribution, "Name") or _folder_name(distribution)


def version_of(distribution: Distribution) -> str:
    """The distribution's version; empty where its metadata has none."""
    return _field(distribution, "Version")


def _field(distribution: Distribution, name: str) -> str:
    try:
        found = distribution.metadata
        return str(found[name]) if name in found else ""
    except Exception:  # no file, or not in UTF-8: what importlib raises differs between versions of Python
        return ""


def _folder_name(distribution: Distribution) -> str:
    """The normal form of the name in ``NAME-VERSION.dist-info``: reading every METADATA would take too long."""
    folder = getattr(distribution, "_path", None)  # no public attribute tells it
    name = _field(distribution, "Name") if folder is None else Path(str(folder)).name.partition("-")[0]
    return canonicalize_name(name.removesuffix(".egg-info").removesuffix(".dist-info"))
