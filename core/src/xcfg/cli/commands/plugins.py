"""``xcfg plugins list|check|trace|describe``."""

from __future__ import annotations

import click

from xcfg.cli.commands.plugins_trace import trace
from xcfg.cli.output import document, emit, json_option, print_out, table
from xcfg.cli.session import Session
from xcfg.errors import Fault, PluginError


@click.group()
def plugins() -> None:
    """List, check, trace or describe plugins."""


@plugins.command(name="list")
@json_option
@click.pass_obj
def list_(session: Session, as_json: bool) -> None:
    """List installed plugins and their commands from their metadata, importing none."""
    from attrs import asdict

    from xcfg.cli.main import COMMANDS
    from xcfg.cli.mounted import command_entries, owners

    brought: dict[str, list[str]] = {}
    for name, entries in command_entries(session, COMMANDS).items():
        for owner in owners(entries):
            brought.setdefault(owner, []).append(name)
    rows = [{**asdict(item), "commands": brought.get(item.distribution, [])} for item in session.inventory()]
    headings = ["name", "distribution", "version", "state", "commands", "error"]
    cells = [
        [", ".join(row["commands"]) if key == "commands" else str(row[key] or "") for key in headings] for row in rows
    ]
    emit(session, as_json, document("plugins", plugins=rows), lambda out: table(out, headings, cells))


@plugins.command()
@json_option
@click.pass_obj
def check(session: Session, as_json: bool) -> None:
    """Import every plugin and collect its descriptors; exit 4 where one is broken."""
    from xcfg.plugin.inventory import CORE

    registry = session.registry(allow_fake=True)
    if registry.failures:
        hints = {item.distribution: f"mend it, or leave it out with -p no:{item.name}" for item in registry.plugins}
        faults = [
            Fault(message=text, where=name, hint="" if name == CORE else hints.get(name, ""))
            for name, text in sorted(registry.failures.items())
        ]
        raise PluginError(faults=faults)
    emit(session, as_json, document("plugins", failures={}), lambda out: out.print("every plugin loads"))


plugins.add_command(trace)


@plugins.command()
@json_option
@click.pass_obj
def describe(session: Session, as_json: bool) -> None:
    """Print all descriptors as one JSON document."""
    from xcfg.model.codec import dump_json, unstructure
    from xcfg.plugin.describe import describe as describe_registry

    del as_json  # descriptors are JSON either way
    found = unstructure(describe_registry(session.registry(allow_fake=True)))
    print_out(dump_json({"status": "pass", **found}))
