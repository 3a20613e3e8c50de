"""Progress on standard error: a bar on a terminal, one line an event elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from xcfg.cli.output import console
from xcfg.cli.session import Session

if TYPE_CHECKING:
    from xcfg.model.plan import Plan
    from xcfg.runner.events import Event


@contextmanager
def progress(session: Session, plan: Plan) -> Iterator[Callable[[Event], None]]:
    """A receiver for the runner's events; silent under ``--quiet``."""
    if session.quiet:
        yield lambda event: None
    elif sys.stderr.isatty() and not os.environ.get("CI"):
        with _bar(session, plan) as receive:
            yield receive
    else:
        yield lambda event: click.echo(f"xcfg: {event.describe()}", err=True)


@contextmanager
def _bar(session: Session, plan: Plan) -> Iterator[Callable[[Event], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from xcfg.runner.events import SideFailed, SideReused, SideSealed

    sides = {side.digest() for case in plan.runnable for side in (case.rollout, case.training)}
    columns = (
        TextColumn("side runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console(session, stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(sides))

        def receive(event: Event) -> None:
            done = isinstance(event, SideSealed | SideReused | SideFailed)
            bar.update(task, advance=1 if done else 0, description=event.describe())

        yield receive
