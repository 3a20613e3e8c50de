"""Events for other programs: one JSON object a line on standard error."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from xcfg.model.codec import unstructure
from xcfg.model.json import Json

if TYPE_CHECKING:
    from xcfg.exitcodes import ExitCode
    from xcfg.runner.events import Event

SCHEMA = "xcfg.event/1"


def fields_of(event: Event) -> dict[str, Json]:
    """The event's own fields; the configuration it is about is ``side``."""
    fields = dict(unstructure(event))
    if "config" in fields:
        fields["side"] = fields.pop("config")
    return fields


class EventLines:
    """Writes each event as it comes. ``elapsed_s`` are seconds since the command began, by a clock that never jumps."""

    def __init__(self) -> None:
        """Begin to count."""
        self._began = time.monotonic()
        self._left = False

    def __call__(self, event: Event, /) -> None:
        """An event of the runner."""
        self._write(event.kind, fields_of(event))

    def started(self, fields: Mapping[str, Json], /) -> None:
        """The first line."""
        self._write("run_started", fields)

    def note(self, text: str, /) -> None:
        """A sentence the user has to know."""
        self._write("note", {"text": text})

    def finished(self, content: Mapping[str, Json], code: ExitCode, /) -> None:
        """The last line, where the command did not end by an error."""
        kept = {name: content[name] for name in ("status", "out", "counts", "wall_s", "engine_s")}
        self._write("run_finished", {**kept, "exit_code": int(code)})

    def _write(self, kind: str, fields: Mapping[str, Json]) -> None:
        """One line; where its reader has left, the run goes on without telling."""
        if self._left:
            return
        elapsed = round(time.monotonic() - self._began, 3)
        line = {"schema": SCHEMA, "event": kind, "elapsed_s": elapsed, **fields}
        try:
            click.echo(json.dumps(unstructure(line), allow_nan=False, ensure_ascii=False), err=True)
        except BrokenPipeError:
            self._left = True
