"""Names inside an experiment: of cases, and what slices refer to."""

from __future__ import annotations

from collections.abc import Iterator

from xcfg.model.codec import Path, unknown
from xcfg.model.json import Json
from xcfg.model.knob import SourceClass
from xcfg.planner.catalog import Catalog
from xcfg.planner.problem import Problem

BASELINE = "baseline"
"""The name of the case in which nothing is changed."""


def check_names(data: dict[str, Json], catalog: Catalog) -> list[Problem]:
    """Names of cases, profiles and slices that are empty, taken or reserved; slices of nothing or of what is absent."""
    found = [*_case_names(data.get("cases")), *_profiles(data.get("profiles")), *_slices(data)]
    for kind, ids in (("profile", catalog.profiles()), ("slice", catalog.slices())):
        found += [_taken(kind, name, catalog) for name in _keys(data.get(f"{kind}s")) if name in ids]
    return found


def _taken(kind: str, name: str, catalog: Catalog) -> Problem:
    """A name that a distribution registered means the same in every experiment."""
    message = f"{name!r} is a {kind} of {catalog.owner(kind, name)}, take another name"
    return Problem(path=(f"{kind}s", name), message=message, at_key=True)


def case_names(cases: Json) -> list[str]:
    """The names of the explicit cases, as far as they have one."""
    rows = cases if isinstance(cases, list) else []
    return [row["name"] for row in rows if isinstance(row, dict) and isinstance(row.get("name"), str)]


def _case_names(cases: Json) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, row in enumerate(cases if isinstance(cases, list) else []):
        name = row.get("name") if isinstance(row, dict) else None
        path: Path = ("cases", index, "name")
        if not isinstance(name, str):
            continue
        if not name.strip():
            yield Problem(path=path, message="a case needs a name")
        elif name == BASELINE:
            yield Problem(path=path, message=f"{BASELINE!r} is the name of the unchanged case, take another")
        elif name in seen:
            yield Problem(path=path, message=f"case {name!r} appears twice")
        seen.add(name)


def _profiles(profiles: Json) -> Iterator[Problem]:
    for name in _keys(profiles):
        path: Path = ("profiles", name)
        if not name.strip():
            yield Problem(path=path, message="a profile needs a name", at_key=True)
        elif isinstance(profiles[name], dict) and profiles[name].get("differ") == []:
            yield Problem(path=path, message="the profile has no case", hint="differ: [[]] is the fully aligned one")


def _keys(value: Json) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def _slices(data: dict[str, Json]) -> Iterator[Problem]:
    slices = data.get("slices")
    known = {
        "cases": ("case", [BASELINE, *case_names(data.get("cases"))]),
        "axes": ("axis", [name for part in ("axes", "linked") for name in _keys(data.get(part))]),
        "source_classes": ("source class", [item.value for item in SourceClass]),
    }
    for name, content in slices.items() if isinstance(slices, dict) else ():
        if not isinstance(content, dict):
            continue
        path: Path = ("slices", name)
        if not any(content.values()):
            yield Problem(path=path, message="the slice selects nothing", hint="give baseline, cases, axes or classes")
        for part, (what, names) in known.items():
            rows = content.get(part)
            for index, item in enumerate(rows if isinstance(rows, list) else []):
                if isinstance(item, str) and item not in names:
                    yield Problem(path=(*path, part, index), message=unknown(what, item, names))
