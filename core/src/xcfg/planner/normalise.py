"""Shorthands of the file format, written out: axes as a list, an operator's backend as its bare id."""

from __future__ import annotations

from attrs import field, frozen

from xcfg.model.codec import Path, unknown
from xcfg.model.json import Json
from xcfg.planner.problem import Problem

_AXIS_FIELDS = ("knob", "values")


@frozen(kw_only=True)
class Normalised:
    """``moved`` maps the paths of ``data`` that differ from those of the file to the latter."""

    data: dict[str, Json]
    moved: dict[Path, Path] = field(factory=dict)
    problems: tuple[Problem, ...] = ()


def normalise(data: dict[str, Json]) -> Normalised:
    """Write the shorthands out; what has neither form stays as it is, for the shape check to name."""
    result = Normalised(data=dict(data))
    problems: list[Problem] = []
    if isinstance(data.get("axes"), list):
        result.data["axes"] = _axes(data["axes"], result.moved, problems)
    if isinstance(data.get("operators"), dict):
        result.data["operators"] = {name: _sides(sides) for name, sides in data["operators"].items()}
    return Normalised(data=result.data, moved=result.moved, problems=tuple(problems))


def _axes(rows: list[Json], moved: dict[Path, Path], problems: list[Problem]) -> dict[str, Json]:
    """``[{knob: K, values: [...]}]`` as ``{K: [...]}``."""
    found: dict[str, Json] = {}
    for index, row in enumerate(rows):
        path: Path = ("axes", index)
        if not isinstance(row, dict):
            problems.append(Problem(path=path, message="expected {knob: NAME, values: [...]}"))
            continue
        problems += [
            Problem(path=(*path, name), message=unknown("field", name, list(_AXIS_FIELDS)), at_key=True)
            for name in row
            if name not in _AXIS_FIELDS
        ]
        problems += [
            Problem(path=(*path, name), message="this field is required") for name in _AXIS_FIELDS if name not in row
        ]
        knob = row.get("knob")
        if "knob" in row and not isinstance(knob, str):
            problems.append(Problem(path=(*path, "knob"), message="expected the name of a knob"))
        if not isinstance(knob, str) or "values" not in row:
            continue
        if knob in found:
            problems.append(Problem(path=(*path, "knob"), message=f"{knob!r} is an axis already"))
            continue
        found[knob] = row["values"]
        moved["axes", knob] = (*path, "values")
    return found


def _sides(sides: Json) -> Json:
    """``{rollout: ID}`` as ``{rollout: {backend: ID}}``."""
    if not isinstance(sides, dict):
        return sides
    return {role: {"backend": choice} if isinstance(choice, str) else choice for role, choice in sides.items()}
