"""The reference has every command, option, knob, hook, metric, status, exit code, entry-point group and schema."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from . import reference
from .snippets import ROOT, everywhere, pages

NO_DOCUMENT = {"xcfg.request/1"}
"""Hashed into a seed and written nowhere."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The generated pages, as ``nox -s docs`` writes them."""
    folder = tmp_path_factory.mktemp("docs")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs/_ext")
        import registered

        registered.generate(SimpleNamespace(srcdir=folder))
        for name in ("registered", "pages", "compatibility"):
            sys.modules.pop(name, None)
    return {path.stem: path.read_text() for path in (folder / "reference/generated").glob("*.md")}


@pytest.fixture(scope="module")
def by_hand() -> str:
    return "\n".join(path.read_text() for path in pages() if path.parent.name == "reference")


def listed(page: str) -> set[str]:
    """The names in the first column of the tables of a page."""
    return set(re.findall(r"^\| `?([^`|]+?)`? \|", page, re.MULTILINE))


def test_every_command_has_a_page_that_shows_the_whole_of_it(generated, by_hand) -> None:
    """sphinx-click writes a command with all that is below it, where it is told ``nested: full``."""
    for words, command in reference.commands():
        name = words.split()[1]
        if f"command-{name}" in generated:
            page = generated[f"command-{name}"]
            ((module, attribute),) = re.findall(r"^\.\. click:: ([\w.]+):(\w+)$", page, re.MULTILINE)
            documented = getattr(__import__(module, fromlist=[attribute]), attribute)
            context = click.Context(documented)
            for word in words.split()[2:]:
                documented = documented.get_command(context, word)
            assert documented is command
            assert ":nested: full" in page and name in generated["commands"]
        elif not isinstance(command, click.Group):
            assert f"`{words}`" in by_hand
            missing = [item.opts[-1] for item in options(command) if f"`{item.opts[-1]}`" not in by_hand]
            assert not missing, f"{words}: {missing}"


def options(command: click.Command) -> list[click.Option]:
    return [item for item in command.params if isinstance(item, click.Option)]


def test_every_command_and_option_says_what_it_does() -> None:
    silent = [words for words, command in reference.commands() if not command.help]
    for words, command in reference.commands():
        silent += [f"{words} {item.opts[-1]}" for item in options(command) if not item.help or item.hidden]
    assert not silent


def test_every_knob_has_a_page(generated) -> None:
    found = {name.removeprefix("knob-") for name in generated if name.startswith("knob-")}
    assert len(reference.knobs()) > 60
    assert reference.knobs() <= found
    for name in reference.knobs():
        assert f"knob-{name}" in generated["knobs"]


def test_every_hook_has_a_page_with_its_words(generated) -> None:
    assert len(reference.hooks()) > 10
    for name in reference.hooks():
        title, text = generated[f"hook-{name}"].split("\n", 1)
        assert title == f"# {name}"
        assert len(text.rpartition("```")[2].split()) > 3, name


def test_every_metric_of_a_comparison_has_its_formula(generated, xcfg, here: Path) -> None:
    rollout, training = (ROOT / f"docs/examples/recorded/{side}.jsonl" for side in ("rollout", "training"))
    metrics = xcfg("compare", rollout, training, "--json").document["metrics"]
    assert len(metrics) > 15
    assert set(metrics) <= listed(generated["metrics"])


def test_every_status_and_exit_code_is_explained(generated, by_hand) -> None:
    statuses = set(reference.constants("core/src/xcfg/model/status.py", "Status").values())
    codes = {str(code) for code in reference.constants("core/src/xcfg/exitcodes.py", "ExitCode").values()}
    assert len(statuses) > 10 and "130" in codes
    assert statuses | codes <= listed(generated["statuses"])
    explained = by_hand.partition("## Exit codes")[2].partition("\n## ")[0]
    assert listed(explained) - {"code", "---"} == codes


def test_every_schema_is_listed_and_nothing_else_is() -> None:
    page = (ROOT / "docs/reference/documents.md").read_text()
    known = reference.schemas() - NO_DOCUMENT
    assert len(known) > 30
    told = set(re.findall(r"`(xcfg\.[a-z.-]+/[0-9]+)`", page))
    assert known == told


def test_entry_point_groups_are_explained() -> None:
    """The groups that the code looks at, and the examples of each."""
    looked = set(re.findall(r"GROUP = \"(xcfg[a-z.]*)\"", "".join(path.read_text() for path in reference.sources())))
    shown = {
        group for block in everywhere("toml") for group in re.findall(r"entry-points\.\"?(xcfg[\w.]*)", block.text)
    }
    assert looked == shown == {"xcfg", "xcfg.commands"}
