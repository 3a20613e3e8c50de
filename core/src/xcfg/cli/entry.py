"""The ``xcfg`` script: help at once, everything else through click.

Importing click takes longer than starting Python. ``xcfg --help`` is the text that click renders, kept beside this
file; a test renders it again and compares.
"""

import os
import sys
from collections.abc import Sequence

HELP = f"{os.path.dirname(__file__)}/help.txt"  # noqa: PTH120  pathlib would double the start-up this module saves


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a code of ``xcfg.exitcodes``."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--help"], ["-h"]):
        with open(HELP, encoding="utf-8") as text:  # noqa: PTH123  as above
            sys.stdout.write(text.read())
        return
    from xcfg.cli.main import main as run

    run(arguments)
