"""Progress on standard error: a bar on a terminal, one line an event elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from xcfg.cli.session import Session

if TYPE_CHECKING:
    from xcfg.model.plan import Plan


@contextmanager
def progress(session: Session, plan: Plan) -> Iterator[Callable[[Any], None]]:
    """A receiver for the runner's events; silent under ``--quiet``."""
    if session.quiet:
        yield lambda event: None
        return
    yield lambda event: click.echo(f"xcfg: {event.describe()}", err=True)
