"""The site as it is built: it builds without a warning, and each command's page shows its options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from . import reference
from .snippets import ROOT

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*command, "docs", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_option_is_on_its_page(site: Path) -> None:
    missing = []
    for words, command in reference.commands():
        page = site / f"reference/generated/command-{words.split()[1]}.html"
        if not page.exists():
            page = site / "reference/kernels-drift.html"
        text = page.read_text()
        for item in command.params:
            if isinstance(item, click.Option):
                missing += [f"{words} {name}" for name in item.opts if name.startswith("--") and name not in text]
    assert not missing


def test_every_knob_and_hook_has_its_page(site: Path) -> None:
    folder = site / "reference/generated"
    for name in reference.knobs():
        assert name in (folder / f"knob-{name}.html").read_text()
    for name in reference.hooks():
        assert name in (folder / f"hook-{name}.html").read_text()
