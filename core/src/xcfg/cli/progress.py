"""Progress on standard error: a live view on a terminal, one line an event elsewhere, JSON lines for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from xcfg.cli.output import console
from xcfg.cli.session import Session
from xcfg.model.json import Json

if TYPE_CHECKING:
    from xcfg.exitcodes import ExitCode
    from xcfg.runner.events import Event


class Progress(Protocol):
    """What follows a command that executes: call it with each event of the runner."""

    def __call__(self, event: Event, /) -> None:
        """The runner tells an event; any thread may, one at a time."""

    def started(self, fields: Mapping[str, Json], /) -> None:
        """The command begins; ``fields`` say with what."""

    def note(self, text: str, /) -> None:
        """A sentence the user has to know."""

    def finished(self, content: Mapping[str, Json], code: ExitCode, /) -> None:
        """The command has its document and exit code."""


class Silent:
    """Nothing but what the user has to know."""

    def __call__(self, event: Event, /) -> None:
        """Nothing."""

    def started(self, fields: Mapping[str, Json], /) -> None:
        """Nothing."""

    def note(self, text: str, /) -> None:
        """One line."""
        click.echo(f"xcfg: {text}", err=True)

    def finished(self, content: Mapping[str, Json], code: ExitCode, /) -> None:
        """Nothing: the report follows."""


class Text(Silent):
    """One line an event."""

    def __init__(self) -> None:
        """Nobody has left yet."""
        self._left = False

    def __call__(self, event: Event, /) -> None:
        """Print the event's line; where its reader has left, the run goes on without telling."""
        if self._left:
            return
        try:
            click.echo(f"xcfg: {event.describe()}", err=True)
        except BrokenPipeError:
            self._left = True


@contextmanager
def progress(session: Session, folder: Path, *, json_lines: bool = False) -> Iterator[Progress]:
    """Who is told what is executed into ``folder``. JSON lines are asked for, so ``--quiet`` does not silence them."""
    if json_lines:
        from xcfg.cli.event_lines import EventLines

        yield EventLines()
    elif session.quiet:
        yield Silent()
    elif sys.stderr.isatty() and not os.environ.get("CI"):
        from xcfg.cli.live import live

        with live(console(session, stderr=True), folder) as view:
            yield view
    else:
        yield Text()
