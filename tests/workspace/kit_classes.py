"""Collects test files with pytest and writes what each class of the kit among them covers: ``FOUND.json FILE...``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from xcfg import testing

KINDS = {name: getattr(testing, name) for name in testing.__all__}


def covered(kind: str, test: Any) -> list[str]:
    """The key of what a class tests; a scorer's is the import string of what it makes."""
    if kind == "PluginTests":
        return [test.distribution]
    if kind == "KnobTests":
        return [test.knob.name]
    if kind == "MaterializerTests":
        return [test.descriptor.scorer, test.descriptor.knob]
    if kind == "KernelBackendTests":
        return [test.descriptor.operator, test.descriptor.id]
    if kind == "ScorerTests":
        made = type(test.make_scorer())
        return [f"{made.__module__}:{made.__qualname__}"]
    return [test.descriptor.id]


class Classes:
    """Keeps the classes of which tests are collected; those that are always skipped cover nothing."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        ran = [item for item in session.items if not item.get_closest_marker("skip")]
        for cls in dict.fromkeys(item.cls for item in ran if getattr(item, "cls", None)):
            for kind, base in KINDS.items():
                if issubclass(cls, base):
                    file = str(Path(sys.modules[cls.__module__].__file__ or "").resolve())
                    known = {"kind": kind, "name": cls.__name__, "file": file, "key": covered(kind, cls())}
                    self.found.append(known)


if __name__ == "__main__":
    classes = Classes()
    code = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[2:]], plugins=[classes])
    Path(sys.argv[1]).write_text(json.dumps(classes.found), encoding="utf-8")
    sys.exit(code)
