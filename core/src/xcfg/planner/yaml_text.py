"""YAML 1.2 with the position of every key and value. Aliases, merge keys, tags and directives are refused.

The node tree of ruamel.yaml is read instead of its loaded form: a loader stops at the first duplicate key, and we name
them all.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from xcfg.errors import InvalidInput
from xcfg.model.codec import Path
from xcfg.model.json import Json
from xcfg.planner.document import Document, Marks, value_problems
from xcfg.planner.problem import Mark, Problem

_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str")}
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_TOO_DEEP = "not YAML that an experiment needs: nested too deeply"
_MAX_OPEN = 64
"""Brackets open at once. The scanner's time grows with the square of their depth, so it must not see more."""


def parse_yaml(text: str, name: str) -> Document:
    """The document in ``text``. Raises InvalidInput with line and column where the syntax is broken."""
    if directive := _DIRECTIVE.search(text):
        line = text.count("\n", 0, directive.start()) + 1
        raise InvalidInput("YAML directives are not accepted, a file is YAML 1.2", where=f"{name}:{line}:1")
    if _open_brackets(text) > _MAX_OPEN:
        raise InvalidInput(_TOO_DEEP, where=name)
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
        reader = _Reader(yaml)
        data = None if node is None else reader.read(node, ())
    except MarkedYAMLError as error:
        raise InvalidInput(f"not YAML: {_said(error)}", where=f"{name}{_at(error)}") from error
    except YAMLError as error:
        raise InvalidInput(f"not YAML: {' '.join(str(error).split())}", where=name) from error
    except RecursionError as error:
        raise InvalidInput(_TOO_DEEP, where=name) from error
    return Document(
        name=name,
        data=data,
        positions=Marks(values=reader.values, keys=reader.keys),
        problems=tuple(reader.problems),
    )


def parse_value(text: str, where: str) -> Json:
    """One value as it would stand in a file: ``[bfloat16, float32]``, ``1e-3``, ``true``. Raises InvalidInput."""
    document = parse_yaml(text, where)
    problems = [*document.problems, *value_problems(document.data)]
    if problems:
        raise InvalidInput(problems[0].message, where=where)
    return document.data


def _open_brackets(text: str) -> int:
    """The most brackets open at once. Those in texts and comments count too, which a file written by hand survives."""
    steps = (1 if match[0] in "[{" else -1 for match in re.finditer(r"[][{}]", text))
    return max(accumulate(steps), default=0)


def _said(error: MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part)


def _at(error: MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"


def _mark(node: Node) -> Mark:
    return node.start_mark.line + 1, node.start_mark.column + 1


class _Reader:
    """Turns nodes into plain data, noting positions and problems on the way."""

    def __init__(self, yaml: YAML) -> None:
        self.yaml = yaml
        self.values: dict[Path, Mark] = {}
        self.keys: dict[Path, Mark] = {}
        self.problems: list[Problem] = []

    def read(self, node: Node, path: Path) -> Json:
        self.values[path] = _mark(node)
        if node.anchor is not None:
            self._note(node, path, f"anchors and aliases are not accepted (&{node.anchor}); write the value out")
            return None  # an aliased node can be its own ancestor
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for key_node, value_node in node.value:
            if not self._is_key(key_node, path):
                continue
            key = key_node.value
            if key in found:
                first = self.keys[*path, key][0]
                self._note(key_node, (*path, key), f"key {key!r} appears twice, first on line {first}", at_key=True)
                continue
            self.keys[*path, key] = _mark(key_node)
            found[key] = self.read(value_node, (*path, key))
        return found

    def _is_key(self, node: Node, path: Path) -> bool:
        if isinstance(node, ScalarNode) and str(node.tag).endswith(":str") and node.anchor is None:
            return True
        said = repr(node.value) if isinstance(node, ScalarNode) else "a list or mapping"
        message = f"{said} is not a key; keys are plain text, quoted where they look like something else"
        self._note(node, path, message, at_key=True)
        return False

    def _scalar(self, node: Node, path: Path) -> Json:
        if node.tag not in _PLAIN:
            kind = str(node.tag).rpartition(":")[2]
            self._note(node, path, f"a value of kind {kind!r} is not accepted; quote it to make it text")
            return None
        constructor: Any = self.yaml.constructor
        return constructor.construct_object(node)

    def _note(self, node: Node, path: Path, message: str, *, at_key: bool = False) -> None:
        self.problems.append(Problem(path=path, message=message, at_key=at_key, mark=_mark(node)))
