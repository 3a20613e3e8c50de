"""Names of copies of the checkpoint: what ``rollout.weights`` is given must be listed under ``derived``."""

from __future__ import annotations

from collections.abc import Iterator

from xcfg.model.codec import Path, unknown
from xcfg.model.json import Json
from xcfg.model.weights import WEIGHTS
from xcfg.planner.check_plugins import assignments
from xcfg.planner.problem import Problem


def check_derived(data: dict[str, Json]) -> list[Problem]:
    """One problem a name that the experiment does not list."""
    derived = data.get("derived")
    names = list(derived) if isinstance(derived, dict) else []
    hint = "list it under derived, with the path of its directory"
    return [
        Problem(path=path, message=unknown("copy of the checkpoint", name, names), hint=hint)
        for path, name in _named(data)
        if name not in names
    ]


def _named(data: dict[str, Json]) -> Iterator[tuple[Path, str]]:
    for path, values in assignments(data):
        value = values.get(WEIGHTS)
        if isinstance(value, str):
            yield (*path, WEIGHTS), value
        for index, item in enumerate(value if isinstance(value, list) else []):
            if isinstance(item, str):
                yield (*path, WEIGHTS, index), item
