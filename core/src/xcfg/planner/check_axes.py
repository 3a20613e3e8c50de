"""Axes as a whole: which knobs move together, which are held, and that each axis varies something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from xcfg.model.codec import Path
from xcfg.model.json import Json
from xcfg.model.knob import Knob
from xcfg.planner.assignment import same
from xcfg.planner.catalog import Catalog
from xcfg.planner.problem import Problem


def check_axes(data: dict[str, Json], catalog: Catalog) -> list[Problem]:
    """Linked axes of unequal or repeated rows, knobs that two axes move or that are held besides, axes of one value.

    ``data`` has its knob values in their normal form; what is not of the right type is left to the shape check.
    """
    check = _Check(data=data, knobs=catalog.knobs())
    found = [*check.twice(), *check.hidden()]
    for name, values in _mapping(data.get("axes")).items():
        found += check.varied(("axes", name), {name: values}, "the axis")
    for name, table in _mapping(data.get("linked")).items():
        path: Path = ("linked", name)
        found += check.rows(path, _mapping(table)) or check.varied(path, _mapping(table), "the linked axis")
    return found


@frozen(kw_only=True)
class _Check:
    data: dict[str, Json]
    knobs: Mapping[str, Knob]

    def twice(self) -> Iterator[Problem]:
        """A knob that is in two axes, and a linked axis with the name of an axis."""
        axes = _mapping(self.data.get("axes"))
        owners = dict.fromkeys(axes, "an axis")
        for name, table in _mapping(self.data.get("linked")).items():
            if name in axes:
                yield Problem(path=("linked", name), message=f"{name!r} is an axis already", at_key=True)
            for knob in _mapping(table):
                if knob in owners:
                    said = f"{knob!r} is moved by {owners[knob]} already"
                    hint = "keep it in one of the two"
                    yield Problem(path=("linked", name, knob), message=said, hint=hint, at_key=True)
                owners[knob] = f"the linked axis {name!r}"

    def hidden(self) -> Iterator[Problem]:
        """A held knob that is an axis too."""
        linked = {knob: name for name, table in _mapping(self.data.get("linked")).items() for knob in _mapping(table)}
        for knob in _mapping(self.data.get("fixed")):
            if knob in _mapping(self.data.get("axes")) or knob in linked:
                axis = linked.get(knob, knob)
                said = f"holding {knob} hides the axis {axis!r}: none of its values would be tried"
                hint = "take it out of `fixed` or take the axis out"
                yield Problem(path=("fixed", knob), message=said, hint=hint, at_key=True)

    def rows(self, path: Path, table: Mapping[str, Json]) -> list[Problem]:
        """What keeps a linked axis from being a list of rows, each different."""
        if not table:
            return [Problem(path=path, message="a linked axis needs knobs, each with its values")]
        if not all(isinstance(values, list) for values in table.values()):
            return []
        lengths = {knob: len(values) for knob, values in table.items()}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{knob} has {length}" for knob, length in lengths.items())
            return [Problem(path=path, message=f"the knobs of a linked axis need as many values each: {said}")]
        rows = list(zip(*table.values(), strict=True))
        first, *rest = table
        return [
            Problem(path=(*path, first, index), message=f"position {index + 1} repeats an earlier one in every knob")
            for index, row in enumerate(rows)
            if any(all(map(same, row, other)) for other in rows[:index]) and rest
        ]

    def varied(self, path: Path, table: Mapping[str, Json], what: str) -> Iterator[Problem]:
        """An axis all of whose values are the baseline's."""
        if not table or not all(isinstance(values, list) and values for values in table.values()):
            return
        if any(knob not in self.knobs for knob in table):
            return
        usual = {knob: self._usual(knob) for knob in table}
        if all(same(value, usual[knob]) for knob, values in table.items() for value in values):
            said = ", ".join(f"{knob}={_shown(value)}" for knob, value in usual.items())
            hint = "give it another value, or take it out"
            yield Problem(path=path, message=f"{what} varies nothing: {said} is the baseline's value", hint=hint)

    def _usual(self, knob: str) -> Json:
        return _mapping(self.data.get("baseline")).get(knob, self.knobs[knob].default)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _shown(value: Json) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
