"""The Python of one page, run block by block in one namespace, as a reader who follows the page would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .snippets import Snippet, blocks


class Bench:
    """``names`` is the namespace; ``here`` an empty folder, in which the process is."""

    def __init__(self, page: Path, here: Path, xcfg: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.page = page
        self.here = here
        self.xcfg = xcfg
        self.monkeypatch = monkeypatch
        self.names: dict[str, Any] = {"__name__": "snippet"}
        self.left = [block for block in blocks(page) if block.language == "python"]

    def run(self, *, replaced: tuple[str, str] = ("", ""), **names: Any) -> dict[str, Any]:
        """Run the next block with these names besides; returns the namespace. ``replaced``: (from, to) in its text."""
        block = self.left.pop(0)
        text = block.text
        if replaced[0]:
            assert replaced[0] in text
            text = text.replace(*replaced)
        self.names.update(names)
        exec(compiled(block, text), self.names)
        return self.names

    def elsewhere(self) -> list[Snippet]:
        """The blocks that are left, which something else runs."""
        rest, self.left = self.left, []
        return rest


def compiled(block: Snippet, text: str = "") -> Any:
    """The code of a block, its lines numbered as on the page. Annotations are looked at as Python does by itself."""
    return compile("\n" * (block.line - 1) + (text or block.text), str(block.page), "exec", dont_inherit=True)
