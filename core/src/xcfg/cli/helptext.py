"""``python -m xcfg.cli.helptext`` renders the text that ``xcfg --help`` prints."""

from __future__ import annotations

from pathlib import Path

from xcfg.cli.entry import HELP
from xcfg.cli.main import cli

WIDTH = 80


def render() -> str:
    """Help of the whole command line as click formats it for 80 columns."""
    with cli.make_context("xcfg", [], resilient_parsing=True, terminal_width=WIDTH) as ctx:
        return cli.get_help(ctx) + "\n"


if __name__ == "__main__":
    Path(HELP).write_text(render(), encoding="utf-8")
