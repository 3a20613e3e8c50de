"""From a problem at a path to a fault at a line and column, or at the override that brought the value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from xcfg.errors import Fault
from xcfg.model.codec import Path, dotted
from xcfg.planner.document import Document
from xcfg.planner.problem import Mark, Problem

_LAST = (1 << 31, 0)
"""Sorts faults without a position behind those that have one."""


@frozen(kw_only=True)
class Locator:
    """``moved`` maps normalised paths to those in the file; ``overridden`` are paths set on the command line."""

    document: Document
    moved: Mapping[Path, Path] = field(factory=dict)
    overridden: tuple[Path, ...] = ()

    def faults(self, problems: Iterable[Problem]) -> list[Fault]:
        """Faults in the order of the file; equal ones once."""
        placed = [(self._mark(problem), problem) for problem in problems]
        placed.sort(key=lambda item: item[0] or _LAST)
        return list(dict.fromkeys(self._fault(mark, problem) for mark, problem in placed))

    def _fault(self, mark: Mark | None, problem: Problem) -> Fault:
        path = problem.path
        if any(path[: len(prefix)] == prefix for prefix in self.overridden):
            place = f"override {dotted(path)}"
        else:
            at = "" if mark is None else f":{mark[0]}:{mark[1]}"
            place = f"{self.document.name}{at} {dotted(self._in_file(path))}".rstrip()
        return Fault(where=place, message=problem.message, hint=problem.hint)

    def _mark(self, problem: Problem) -> Mark | None:
        if problem.mark is not None:
            return problem.mark
        if any(problem.path[: len(prefix)] == prefix for prefix in self.overridden):
            return None
        path, at_key = self._in_file(problem.path), problem.at_key
        while (found := self.document.positions.find(path, at_key)) is None and path:
            path, at_key = path[:-1], True
        return found

    def _in_file(self, path: Path) -> Path:
        for count in range(len(path), 0, -1):
            if path[:count] in self.moved:
                return (*self.moved[path[:count]], *path[count:])
        return path
