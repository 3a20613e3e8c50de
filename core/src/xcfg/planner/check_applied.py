"""Knobs that no installed scorer or kernel can apply: whatever is asked of them, no case could be run."""

from __future__ import annotations

from collections.abc import Iterator

from xcfg.errors import PluginError
from xcfg.model.codec import Path
from xcfg.model.json import Json
from xcfg.model.scorer import ScorerDescriptor
from xcfg.planner.build_knobs import chooses_build, names_knob
from xcfg.planner.catalog import Catalog
from xcfg.planner.problem import Problem

_ROLES = ("rollout", "training")


def check_applied(data: dict[str, Json], catalog: Catalog) -> list[Problem]:
    """One problem a place. Fakes count where the experiment uses one."""
    scorers = _scorers(data, catalog)
    return [
        Problem(path=path, message=message, hint=hint, at_key=True, kind=PluginError)
        for path, name in _named(data)
        if name in catalog.knobs()
        for message, hint in _unapplied(name, scorers, catalog)
    ]


def _unapplied(name: str, scorers: list[ScorerDescriptor], catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Message and hint where nothing applies the knob; a scorer that declares it to mean nothing there knows it."""
    if chooses_build(catalog.knobs()[name]):
        if not any(names_knob(backend, name) for backend in catalog.backends().values()):
            yield f"no installed kernel comes in builds that differ in {name}", _hint("backends")
    elif not any(catalog.materializer(name, scorer.id) is not None for scorer in scorers):
        yield f"no installed plugin applies {name} to a scorer", _hint("scorers")


def _hint(what: str) -> str:
    return f"`xcfg {what} list` shows what is installed; install the plugin that applies it, or leave it out"


def _scorers(data: dict[str, Json], catalog: Catalog) -> list[ScorerDescriptor]:
    every = catalog.scorers()
    sides = [data.get(role) for role in _ROLES]
    used = [side.get("scorer") for side in sides if isinstance(side, dict)]
    fakes = any(scorer.fake for name, scorer in every.items() if name in used)
    return [scorer for scorer in every.values() if fakes or not scorer.fake]


def _named(data: dict[str, Json]) -> Iterator[tuple[Path, str]]:
    """Every place where a value is asked of a knob."""
    for part in ("baseline", "axes", "fixed"):
        yield from (((part, name), name) for name in _keys(data.get(part)))
    linked: Json = data.get("linked") or {}
    for axis in _keys(linked):
        yield from ((("linked", axis, name), name) for name in _keys(linked[axis]))
    cases = data.get("cases")
    for index, case in enumerate(cases if isinstance(cases, list) else []):
        changes = case.get("set") if isinstance(case, dict) else None
        yield from ((("cases", index, "set", name), name) for name in _keys(changes))


def _keys(value: Json) -> list[str]:
    return list(value) if isinstance(value, dict) else []
