"""The fenced blocks and inline spans of every page that people read, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "core/README.md", "docs/**/*.md", "plugins/*/README.md", "kernels/*/README.md")
_NOT_WRITTEN_BY_HAND = {"_build", "generated"}
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}|:{3,})(?P<language>.*)$")
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@frozen(kw_only=True)
class Snippet:
    """A piece of a page; ``line`` is that of its first line, from 1. Without a language it is empty."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """``page:line``, the page relative to the repository."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page written by hand."""
    found = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    return sorted(path for path in found if not _NOT_WRITTEN_BY_HAND.intersection(path.relative_to(ROOT).parts))


def blocks(page: Path) -> Iterator[Snippet]:
    """The fenced blocks of a page. A fence that is never closed is an error of the page."""
    opened: re.Match[str] | None = None
    first, kept = 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                opened, first, kept = fence, number + 1, []
        elif fence and fence["fence"].startswith(opened["fence"]) and not fence["language"].strip():
            yield Snippet(page=page, line=first, language=opened["language"].strip(), text="\n".join(kept))
            opened = None
        else:
            kept.append(line.removeprefix(opened["indent"]))
    assert opened is None, f"{page}:{first - 1}: the block is not closed"


def spans(page: Path) -> Iterator[Snippet]:
    """The inline code of a page, outside its fenced blocks."""
    lines = page.read_text(encoding="utf-8").splitlines()
    fenced = {
        number
        for block in blocks(page)
        for number in range(block.line - 1, block.line + 1 + len(block.text.splitlines()))
    }
    for number, line in enumerate(lines, 1):
        if number not in fenced:
            for found in _SPAN.finditer(line):
                yield Snippet(page=page, line=number, language="", text=found[1])


def everywhere(*languages: str) -> list[Snippet]:
    """The blocks of all pages in one of these languages."""
    return [block for page in pages() for block in blocks(page) if block.language in languages]
