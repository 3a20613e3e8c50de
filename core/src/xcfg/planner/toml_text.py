"""TOML through the standard library, which gives no positions: they are searched for when an error is printed."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from attrs import frozen

from xcfg.errors import InvalidInput
from xcfg.model.codec import Path
from xcfg.planner.document import Document
from xcfg.planner.problem import Mark

_PLACE = re.compile(r"^(?P<said>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)$")


def parse_toml(text: str, name: str) -> Document:
    """The document in ``text``. Raises InvalidInput with line and column where the syntax is broken."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.match(str(error))
        where = f"{name}:{place['line']}:{place['column']}" if place else name
        raise InvalidInput(f"not TOML: {place['said'] if place else error}", where=where) from error
    except (ValueError, RecursionError) as error:  # an integer of more digits than Python converts; nesting
        raise InvalidInput(f"not TOML that an experiment needs: {error}", where=name) from error
    return Document(name=name, data=data, positions=_Lines(text=text))


@frozen(kw_only=True)
class _Lines:
    """Finds a path as the first run of lines from the top that parses and already holds it."""

    text: str

    def find(self, path: Path, at_key: bool) -> Mark | None:
        lines = self.text.splitlines(keepends=True)
        for count in range(1, len(lines) + 1):
            try:
                data = tomllib.loads("".join(lines[:count]))
            except tomllib.TOMLDecodeError:
                continue  # the prefix ends inside a value
            if _holds(data, path):
                return _key_place(lines[:count], path)
        return None


def _holds(data: Any, path: Path) -> bool:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _key_place(lines: list[str], path: Path) -> Mark:
    """Where the last key of the path stands, looking back from the line that completes it."""
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    for line in range(len(lines), 0, -1):
        if (column := lines[line - 1].find(key)) >= 0:
            return line, column + 1
    return len(lines), 1
