"""JSON with the position of every key and value, and every duplicate key named instead of the first."""

from __future__ import annotations

import json
import re
from bisect import bisect_right

from xcfg.errors import InvalidInput
from xcfg.model.codec import Path
from xcfg.model.json import Json
from xcfg.planner.document import Document, Marks
from xcfg.planner.problem import Mark, Problem

_SPACE = re.compile(r"[ \t\n\r]*")
_SCALARS = json.JSONDecoder()


def parse_json(text: str, name: str) -> Document:
    """The document in ``text``. Raises InvalidInput with line and column where the syntax is broken."""
    reader = _Reader(text)
    try:
        data, end = reader.read(reader.skip(0), ())
        if reader.skip(end) != len(text):
            raise json.JSONDecodeError("Extra data", text, reader.skip(end))
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON: {error.msg}", where=f"{name}:{error.lineno}:{error.colno}") from error
    except (ValueError, RecursionError) as error:  # an integer of more digits than Python converts; nesting
        raise InvalidInput(f"not JSON that an experiment needs: {error}", where=name) from error
    marks = Marks(values=reader.values, keys=reader.keys)
    return Document(name=name, data=data, positions=marks, problems=tuple(reader.problems))


class _Reader:
    """Walks objects and arrays itself and leaves strings, numbers and words to the standard decoder."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.values: dict[Path, Mark] = {}
        self.keys: dict[Path, Mark] = {}
        self.problems: list[Problem] = []

    def skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return at if match is None else match.end()

    def read(self, at: int, path: Path) -> tuple[Json, int]:
        self.values[path] = self._mark(at)
        opening = self.text[at : at + 1]
        if opening == "{":
            return self._object(at, path)
        if opening == "[":
            return self._array(at, path)
        return _SCALARS.raw_decode(self.text, at)

    def _object(self, at: int, path: Path) -> tuple[dict[str, Json], int]:
        found: dict[str, Json] = {}
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "}":
            if found:
                at = self._expect(at, ",")
            key_at = at
            if self.text[at : at + 1] != '"':
                raise json.JSONDecodeError("Expecting a key in double quotes", self.text, at)
            key, end = _SCALARS.raw_decode(self.text, at)
            at = self._expect(self.skip(end), ":")
            place = (*path, key)
            if key in found:
                first = self.keys[*path, key][0]
                message = f"key {key!r} appears twice, first on line {first}"
                self.problems.append(Problem(path=place, message=message, at_key=True, mark=self._mark(key_at)))
                place = (*place, -1)  # the second value is read past, and keeps no position
            else:
                self.keys[place] = self._mark(key_at)
            value, end = self.read(at, place)
            found.setdefault(key, value)
            at = self.skip(end)
        return found, at + 1

    def _array(self, at: int, path: Path) -> tuple[list[Json], int]:
        found: list[Json] = []
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "]":
            if found:
                at = self._expect(at, ",")
            value, end = self.read(at, (*path, len(found)))
            found.append(value)
            at = self.skip(end)
        return found, at + 1

    def _expect(self, at: int, mark: str) -> int:
        if self.text[at : at + 1] != mark:
            raise json.JSONDecodeError(f"Expecting {mark!r}", self.text, at)
        return self.skip(at + 1)

    def _mark(self, at: int) -> Mark:
        line = bisect_right(self.lines, at)
        return line, at - self.lines[line - 1] + 1
