"""What the extras of a distribution bring, from its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import metadata

from packaging.requirements import Requirement


def extras(distribution: str) -> Mapping[str, list[str]]:
    """Names of distributions by extra. What cannot be read of them is left out: it is the inventory's to tell of."""
    try:
        found = metadata(distribution)
        lines = found.get_all("Requires-Dist") or ()
        names = found.get_all("Provides-Extra") or ()
    except Exception:  # not there, no file, or in no encoding
        return {}
    needs: dict[str, list[str]] = {}
    for line in lines:
        try:
            requirement = Requirement(line)
            brought = [name for name in names if requirement.marker and requirement.marker.evaluate({"extra": name})]
        except ValueError:
            continue
        for name in brought:
            needs.setdefault(name, []).append(requirement.name)
    return needs
