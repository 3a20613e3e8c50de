"""A page on writing a distribution, followed word for word: its commands are run, its code put into the files it names.

What the page installs with ``pip install -e`` is installed into a folder of its own, its packages as links: edits are
seen at once, as they are by a reader.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .merged import merged
from .shell import commands
from .snippets import ROOT, Snippet, blocks

_FILE = re.compile(r"`([\w./-]+\.(?:py|yaml))`[^`]*:$")
_DELETED = re.compile(r"^Delete |\. Delete ")
_INSTALLED = re.compile(r"\./(xcfg-[a-z-]+)\[[a-z,]+\]")


class Followed:
    """``here`` is the reader's folder; ``done`` are the commands that were run, each with its output."""

    def __init__(self, page: Path, here: Path) -> None:
        self.page = page
        self.here = here
        self.site = here / "site"
        self.distribution: Path | None = None
        self.done: dict[str, str] = {}

    def follow(self, taken: Callable[[list[str]], bool] = lambda words: True) -> None:
        """Go through the page from its top; of the commands, run those that are ``taken``."""
        for block in blocks(self.page):
            self._delete(paragraph(block))
            if block.language == "sh":
                for line in block.text.splitlines():
                    (words,) = commands(line)
                    if taken(words):
                        self.run(line, words)
            elif block.language in ("python", "yaml") and (name := named_file(block)):
                self.put(name, block.text, whole=paragraph(block).endswith("whole:"))

    def put(self, name: str, text: str, *, whole: bool) -> None:
        """Write a file, or put code into the one that is there."""
        folder = self.here if name.endswith(".yaml") or self.distribution is None else self.distribution
        path = folder / name
        path.write_text(merged(path.read_text(), text) if path.exists() and not whole else text)

    def run(self, line: str, words: list[str]) -> None:
        """Run one command, which has to succeed."""
        if words[0] == "pip":
            self._install(words[-1])
            return
        module = {"xcfg": "xcfg.cli", "pytest": "pytest"}[words[0]]
        words = [*words[1:], "-q", "-p", "no:cacheprovider"] if module == "pytest" else words[1:]
        done = subprocess.run(
            [sys.executable, "-m", module, *words], cwd=self.here, env=self._environment(line), capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        self.done[line] = done.stdout

    def _delete(self, before: str) -> None:
        """What the paragraph says to delete, in its sentence."""
        if self.distribution is not None and (found := _DELETED.search(before)):
            for name in re.findall(r"`([\w./]+\.py)`", before[found.end() :].partition(", and ")[0]):
                (self.distribution / name).unlink()

    def _install(self, asked: str) -> None:
        found = _INSTALLED.fullmatch(asked)
        assert found, asked
        self.distribution = self.here / found[1]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--target", self.site, self.distribution], check=True, capture_output=True)
        (source,) = (self.distribution / "src").iterdir()
        shutil.rmtree(self.site / source.name)
        (self.site / source.name).symlink_to(source)

    def _environment(self, line: str) -> dict[str, str]:
        given = dict(re.findall(r"^([A-Z_]+)=(\S+) ", line))
        apart = {"PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**os.environ, **apart, **given}


def named_file(block: Snippet) -> str:
    """The file that the paragraph before a block says it is of; empty where it names none."""
    found = _FILE.search(paragraph(block))
    return found[1] if found else ""


def paragraph(block: Snippet) -> str:
    """The paragraph before a block, in one line."""
    lines: list[str] = []
    for line in reversed(block.page.read_text(encoding="utf-8").splitlines()[: block.line - 2]):
        if line.strip():
            lines.insert(0, line.strip())
        elif lines:
            break
    return " ".join(lines)


def give_checkpoint(here: Path) -> None:
    """The checkpoint ``model`` and ``prompts.jsonl``, four of them."""
    shutil.copytree(ROOT / "docs/examples/qwen3-tiny", here / "model")
    prompts = (ROOT / "docs/examples/qwen3-tiny-prompts.jsonl").read_text().splitlines()[:4]
    (here / "prompts.jsonl").write_text("\n".join(prompts) + "\n")
