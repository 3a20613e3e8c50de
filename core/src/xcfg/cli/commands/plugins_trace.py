"""``xcfg plugins trace``: what loading each plugin costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from xcfg.cli.output import document, emit, json_option, table
from xcfg.cli.session import Session
from xcfg.exitcodes import ExitCode
from xcfg.model.json import Json

if TYPE_CHECKING:
    from rich.console import Console

    from xcfg.plugin.trace import HookTrace, PluginTrace


@click.command()
@json_option
@click.pass_context
def trace(ctx: click.Context, as_json: bool) -> None:
    """Load every plugin in order and tell what it costs; exit 4 where one is broken.

    Seconds to import its module and for each hook that gives descriptors, how many it gave, and the heavy packages
    (torch, numpy and the like) that it brought. What an earlier plugin imported costs a later one nothing.
    """
    session: Session = ctx.obj
    found = session.trace()
    broken = any(item.info.error for item in found)
    content = document("plugins.trace", "error" if broken else "pass", plugins=[_row(item) for item in found])
    emit(session, as_json, content, lambda out: _print(out, found))
    ctx.exit(ExitCode.PLUGIN if broken else ExitCode.PASS)


def _row(item: PluginTrace) -> dict[str, Json]:
    from xcfg.model.codec import unstructure

    fields = unstructure(item)
    about = fields.pop("info")
    about.pop("target")
    return {**about, **fields}


def _print(out: Console, found: Sequence[PluginTrace]) -> None:
    rows = [
        [item.info.name, item.info.distribution, item.info.version, item.info.state.value, _seconds(item.import_s),
         ", ".join(item.heavy), ", ".join(map(_hook, item.hooks)), item.info.error]
        for item in found
    ]  # fmt: skip
    table(out, ["name", "distribution", "version", "state", "import s", "brings", "hooks", "error"], rows)


def _hook(item: HookTrace) -> str:
    """``knobs 3 (0.001 s)``; the name alone where it was not called."""
    name = item.hook.removeprefix("xcfg_")
    if item.seconds is None:
        return name
    return f"{name} {'failed' if item.descriptors is None else item.descriptors} ({_seconds(item.seconds)} s)"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
