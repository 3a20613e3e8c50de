"""Reports that a command writes to files, for CI systems and people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from xcfg.errors import InvalidInput
from xcfg.model.json import Json

_REPORTS = ("junit", "markdown", "html")
_PATH = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option("--junit", type=_PATH, metavar="FILE", help="Write JUnit XML, a test case a case."),
    click.option("--markdown", type=_PATH, metavar="FILE", help="Write Markdown for a pull-request comment."),
)


def written_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which hands their values to :func:`check_written` and :func:`write`."""
    for decorate in reversed(_OPTIONS):
        command = decorate(command)
    return command


def check_written(given: Mapping[str, Any], *, executed: bool = True) -> None:
    """Raise InvalidInput where a report could not be written, before anything is ``executed`` for it."""
    for name in _REPORTS:
        path = given.get(name)
        if path is not None and not executed:
            hint = "leave it out, or leave out --dry-run"
            raise InvalidInput("nothing is executed that could be reported", where=f"--{name}", hint=hint)
        if path is not None and not path.absolute().parent.is_dir():
            hint = "name a file in a folder that exists"
            raise InvalidInput(f"no folder {path.parent}", where=f"--{name}", hint=hint)


def write(given: Mapping[str, Any], content: Mapping[str, Json]) -> None:
    """Write the reports that were asked for; an existing file is replaced in one step."""
    from xcfg.report.junit import junit_xml
    from xcfg.report.markdown import markdown
    from xcfg.runner.durable import replace

    if given["junit"] is not None:
        replace(given["junit"], junit_xml(content))
    if given["markdown"] is not None:
        replace(given["markdown"], markdown(content).encode())
