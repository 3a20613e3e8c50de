"""Knob names and values wherever an experiment has them: normalised through their domains, every fault named."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from xcfg.errors import XcfgError
from xcfg.model.codec import Path
from xcfg.model.json import Json
from xcfg.model.knob import Knob
from xcfg.planner.catalog import Catalog
from xcfg.planner.problem import Problem, from_error
from xcfg.planner.refused import explained


def check_knobs(data: dict[str, Json], catalog: Catalog) -> list[Problem]:
    """Replace knob values in ``data`` by their normal form, in place, and return what cannot be."""
    check = _Check(catalog=catalog)
    check.singles(data.get("baseline"), ("baseline",))
    check.singles(data.get("fixed"), ("fixed",))
    check.lists(data.get("axes"), ("axes",), "an axis")
    for name, table in _tables(data.get("linked")):
        check.columns(table, ("linked", name))
    for name, assignment in _tables(check.knob_keys(data.get("aligned"), ("aligned",))):
        check.singles(assignment, ("aligned", name))
    for index, case in _items(data.get("cases")):
        check.singles(case.get("set"), ("cases", index, "set"))
    for index, constraint in _items(data.get("constraints")):
        for part in ("when", "require"):
            check.lists(constraint.get(part), ("constraints", index, part), "a constraint")
    return check.problems


def _tables(tables: Json) -> list[tuple[str, dict[str, Json]]]:
    """The mappings of a mapping by name; anything else is for the shape check to name."""
    return [(name, row) for name, row in tables.items() if isinstance(row, dict)] if isinstance(tables, dict) else []


def _items(rows: Json) -> list[tuple[int, dict[str, Json]]]:
    """The mappings of a list with their indices; anything else is for the shape check to name."""
    return [(index, row) for index, row in enumerate(rows) if isinstance(row, dict)] if isinstance(rows, list) else []


@frozen(kw_only=True)
class _Check:
    catalog: Catalog
    problems: list[Problem] = field(factory=list)

    def singles(self, values: Json, path: Path) -> None:
        """Knob to value."""
        for name, knob in self._knobs(values, path):
            values[name] = self._normal(knob, values[name], (*path, name))

    def columns(self, values: Json, path: Path) -> None:
        """Knob to a list of values, some perhaps more than once."""
        for name, knob in self._knobs(values, path):
            if isinstance(values[name], list):
                values[name] = [self._normal(knob, item, (*path, name, at)) for at, item in enumerate(values[name])]

    def knob_keys(self, values: Json, path: Path) -> Json:
        """The same mapping, its keys checked."""
        self._knobs(values, path)
        return values

    def lists(self, values: Json, path: Path, what: str) -> None:
        """Knob to a list of values, none of them twice."""
        for name, knob in self._knobs(values, path):
            if not isinstance(values[name], list):
                continue
            if not values[name]:
                self.problems.append(Problem(path=(*path, name), message=f"{what} needs at least one value"))
            values[name] = self._distinct(knob, values[name], (*path, name))

    def _knobs(self, values: Json, path: Path) -> list[tuple[str, Knob]]:
        if not isinstance(values, dict):
            return []
        found = []
        for name in values:
            try:
                found.append((name, self.catalog.knob(name)))
            except XcfgError as error:
                self.problems.extend(explained(item) for item in from_error(error, (*path, name), at_key=True))
        return found

    def _distinct(self, knob: Knob, values: list[Json], path: Path) -> list[Json]:
        kept: list[Json] = []
        for index, value in enumerate(values):
            normal = self._normal(knob, value, (*path, index))
            if normal in kept:
                same = "" if normal == value else f", as {value!r}"
                self.problems.append(Problem(path=(*path, index), message=f"value {normal!r} appears twice{same}"))
            kept.append(normal)
        return kept

    def _normal(self, knob: Knob, value: Any, path: Path) -> Json:
        try:
            return knob.domain.normalise(value)
        except (ValueError, OverflowError) as error:
            self.problems.append(Problem(path=path, message=f"{knob.name}: {error}"))
            return value
