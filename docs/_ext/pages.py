"""Generated Markdown pages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

WRITTEN: set[str] = set()
"""Document names of this build; what else lies in the folder is of an earlier one, and goes."""


def page(folder: Path, name: str, lines: Iterable[str]) -> str:
    """Write one Markdown page where its text changed; returns its document name."""
    WRITTEN.add(name)
    text = "\n".join(lines) + "\n"
    target = folder / f"{name}.md"
    if not target.exists() or target.read_text() != text:
        target.write_text(text)
    return name


def table(headings: list[str], rows: Iterable[list[str]]) -> list[str]:
    """A Markdown table."""
    escape = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return [
        "| " + " | ".join(headings) + " |",
        "|" + "---|" * len(headings),
        *("| " + " | ".join(row) + " |" for row in escape),
    ]


def index(title: str, intro: str, names: list[str]) -> list[str]:
    """An index page with its table of contents."""
    return [f"# {title}", "", intro, "", "```{toctree}", ":maxdepth: 1", "", *names, "```"]
