"""A parsed file: plain data, and where each part of it stands in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Protocol

from attrs import field, frozen

from xcfg.model.codec import Path
from xcfg.model.json import Json
from xcfg.planner.problem import Mark, Problem


class Positions(Protocol):
    """Finds where a path stands in the text."""

    def find(self, path: Path, at_key: bool) -> Mark | None:
        """Position of the value at ``path``, or of its key; None where the text does not hold the path."""


@frozen(kw_only=True)
class Marks:
    """Positions noted while parsing."""

    values: Mapping[Path, Mark] = field(factory=dict)
    keys: Mapping[Path, Mark] = field(factory=dict)

    def find(self, path: Path, at_key: bool) -> Mark | None:
        """See :class:`Positions`."""
        if at_key and path in self.keys:
            return self.keys[path]
        return self.values.get(path)


@frozen(kw_only=True)
class Document:
    """``data`` is plain JSON; ``problems`` are those that only the syntax shows (a key given twice, an alias)."""

    name: str
    data: Json
    positions: Positions
    problems: tuple[Problem, ...] = ()


def value_problems(value: Json, path: Path = ()) -> Iterator[Problem]:
    """Values that are no JSON, or that JSON cannot carry: infinities, NaN, dates, lone surrogates."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _text_problems(key, (*path, key), at_key=True)
            yield from value_problems(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from value_problems(item, (*path, index))
    elif isinstance(value, float) and not isfinite(value):
        yield Problem(path=path, message=f"a finite number is required, got {value} (written as such or too large)")
    elif isinstance(value, str):
        yield from _text_problems(value, path, at_key=False)
    elif value is not None and not isinstance(value, bool | int | float):
        yield Problem(path=path, message=f"{type(value).__name__} is not accepted here; quote it to make it text")


def _text_problems(text: str, path: Path, *, at_key: bool) -> Iterator[Problem]:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        yield Problem(path=path, message="the text is not valid Unicode (a lone surrogate)", at_key=at_key)
