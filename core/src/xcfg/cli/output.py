"""Output of commands: one JSON document, or text for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from xcfg.cli.session import Session
from xcfg.model.json import Json

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 132
"""Columns where the output is no terminal: a file, a pipe, a CI log."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")


def console(session: Session, *, stderr: bool = False) -> Console:
    """A rich console that honours ``--color``, NO_COLOR and the terminal."""
    from rich.console import Console

    class Lasting(Console):
        def on_broken_pipe(self) -> None:
            """Write no more; rich's own way is to exit 1, which reads as drift."""
            self.quiet = True
            _forget_reader()

    stream = sys.stderr if stderr else sys.stdout
    return Lasting(
        stderr=stderr,
        width=None if stream.isatty() else PLAIN_WIDTH,
        force_terminal=True if session.color else None,
        no_color=True if session.color is False else None,
        highlight=False,
        soft_wrap=True,
    )


def document(command: str, status: str = "pass", **fields: Json) -> dict[str, Json]:
    """The JSON document of a command: ``schema``, ``status`` and its fields."""
    return {"schema": f"xcfg.{command}/1", "status": status, **fields}


def emit(session: Session, as_json: bool, content: Mapping[str, Json], human: Callable[[Console], Any]) -> None:
    """Print ``content`` as JSON, or let ``human`` write to the console."""
    if as_json:
        from xcfg.model.codec import unstructure

        print_out(json.dumps(unstructure(content), allow_nan=False, ensure_ascii=False))
        return
    with _reader_may_leave():
        human(console(session))


def print_out(text: str, *, newline: bool = True) -> None:
    """Print ``text`` on standard output."""
    with _reader_may_leave():
        click.echo(text, nl=newline)


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """A reader that has seen enough (``| head``) changes no verdict: the command ends with its own code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_reader()


def _forget_reader() -> None:
    """Send what is still buffered nowhere, or the interpreter fails on it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def table(out: Console, headings: list[str], rows: list[list[str]]) -> None:
    """A plain table, its headings also where there is no row."""
    from xcfg.report.layout import print_table

    print_table(out, headings, rows, empty=True)
