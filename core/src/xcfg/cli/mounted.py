"""Commands that plugins add: the entry-point group ``xcfg.commands``, found by name and imported when called."""

from __future__ import annotations

from collections.abc import Container, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

import click

from xcfg.errors import PluginError

if TYPE_CHECKING:
    from xcfg.cli.session import Session

GROUP = "xcfg.commands"


def command_entries(session: Session, reserved: Container[str]) -> Mapping[str, EntryPoint]:
    """By name the commands of usable plugins, from metadata alone. Names of core's own commands are ``reserved``.

    Raises PluginError where two distributions bring one name.
    """
    from xcfg.plugin.inventory import PluginState

    usable = {info.distribution for info in session.inventory() if info.state is PluginState.AVAILABLE}
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        if entry.dist is None or entry.dist.name not in usable or entry.name in reserved:
            continue
        other = found.get(entry.name)
        if other is not None and other.dist is not None:
            names = " and ".join(sorted((other.dist.name, entry.dist.name)))
            raise PluginError(
                f"the command {entry.name!r} is registered by {names}",
                where=GROUP,
                hint="leave one out with -p no:NAME",
            )
        found[entry.name] = entry
    return dict(sorted(found.items()))


def load_command(entry: EntryPoint) -> click.Command:
    """The command of an entry point. Raises PluginError, naming the distribution, where it cannot be had."""
    from xcfg.plugin.target import load_target

    owner = entry.dist.name if entry.dist is not None else entry.value
    command = load_target(entry.value, owner)
    if not isinstance(command, click.Command):
        raise PluginError(f"{entry.value} is not a click command", where=owner)
    return command
