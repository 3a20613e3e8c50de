"""Every command that a page shows is one that would be taken."""

from __future__ import annotations

import shlex

import pytest

from .command_lines import fault, known, sessions
from .shell import commands
from .snippets import Snippet, blocks, everywhere, pages, spans

SHELL = ("sh", "bash", "console", "")
SHOWN = [block for block in everywhere(*SHELL) if block.text.strip()]
MADE_BY_THE_READER = {"xcfg mine"}
"""Commands that a page tells how to write."""


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.place)
def test_its_commands_are_taken(block: Snippet) -> None:
    found = list(commands(block.text))
    assert found, f"{block.place}: no command"
    faults = [
        f"{block.place}: {shlex.join(words)}: {told}" for words in found if (told := fault(words, block.page.parent))
    ]
    assert not faults, "\n".join(faults)


def mentions() -> list[Snippet]:
    """Inline code that names a command."""
    programs = ("xcfg ", ".venv/bin/xcfg ", "nox -s ", "python tests/", "python docs/", "pip install ", "python -m ")
    return [span for page in pages() for span in spans(page) if span.text.startswith(programs)]


def test_the_commands_that_are_mentioned_exist() -> None:
    faults = []
    for span in mentions():
        if span.text in MADE_BY_THE_READER or "[GLOBAL" in span.text:
            continue
        for words in commands(span.text):
            told = known(words[1:]) if words[0].endswith("xcfg") else fault(words, span.page.parent)
            faults += [f"{span.place}: {span.text}: {told}"] if told else []
    assert not faults, "\n".join(faults)


def test_indented_commands_of_contributing() -> None:
    (page,) = (page for page in pages() if page.name == "CONTRIBUTING.md")
    lines = [line.strip() for line in page.read_text().splitlines() if line.startswith("    ")]
    assert any(line.startswith("nox -s") for line in lines)
    assert [told for line in lines for words in commands(line) if (told := fault(words, page.parent))] == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("xcfg rum mine.yaml", "No such command"),
        ("xcfg run mine.yaml --slices a", "No such option"),
        ("xcfg compare one.jsonl", "Missing argument"),
        ("xcfg run mine.yaml --retry few", "Invalid value"),
        ("xcfg cube", "Usage: xcfg cube"),
        ("xcfg kernels drift --tq 1", "No such option"),
        ("xcfg run docs/examples/nothing.yaml", "is not there"),
        ("nox -s nothing", "no session nothing"),
        ("python make_nothing.py", "is not there"),
        ("python -m xcfg.nothing", "no module"),
        ("pip install 'xcfg-vllm[engine]'", "no such distribution or extra"),
        ("pip install xcfg-nothing", "no such distribution or extra"),
        ("pip install -e './xcfg-my-kernel[engines]'", "no extra engines"),
        ("rm -r runs", "an unknown program rm"),
    ],
)
def test_what_would_not_be_taken_is_told(line: str, said: str) -> None:
    (words,) = commands(line)
    assert said in fault(words, pages()[0].parent)


def test_a_line_is_read_as_a_shell_does() -> None:
    text = "F=a/b.pt  # a file\nxcfg compare $F $F \\\n  --dtype bfloat16 > out.txt\nX=1 xcfg run m 2> >(jq -c .x) | jq . && pip"  # noqa: E501
    assert list(commands(text)) == [
        ["xcfg", "compare", "a/b.pt", "a/b.pt", "--dtype", "bfloat16"],
        ["xcfg", "run", "m"], ["jq", "-c", ".x"], ["jq", "."], ["pip"],
    ]  # fmt: skip


def test_pages_and_sessions_are_found() -> None:
    assert {"README.md", "first-run.md", "frameworks.md", "experiment.md", "contract.md"} <= {p.name for p in pages()}
    assert {"demo", "dev", "tests"} <= sessions()
    assert sum(1 for page in pages() for _ in blocks(page)) > 90
