"""``xcfg --help`` prints what click renders, without importing click."""

import subprocess
import sys
from pathlib import Path

import pytest

from xcfg.cli.entry import HELP, main
from xcfg.cli.helptext import render

KEPT = Path(HELP).read_text(encoding="utf-8")


def test_the_kept_text_is_what_click_renders() -> None:
    # words, not columns: releases of click wrap differently
    assert KEPT.split() == render().split(), "write it again: python -m xcfg.cli.helptext"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_printed(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([flag])
    assert capsys.readouterr().out == KEPT


def test_help_imports_no_click() -> None:
    program = "import sys\nfrom xcfg.cli.entry import main\nmain(['--help'])\nprint('click' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
