"""Commands that plugins add: the entry-point group ``xcfg.commands``, found by name and imported when called."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

import click

from xcfg.errors import PluginError
from xcfg.plugin.entries import Unreadable, entry_points, name_of

if TYPE_CHECKING:
    from xcfg.cli.session import Session

GROUP = "xcfg.commands"


def command_entries(session: Session, reserved: Container[str]) -> Mapping[str, Sequence[EntryPoint]]:
    """By name the commands of usable plugins, from metadata alone. Names of core's own commands are ``reserved``.

    A name that several distributions bring has several entries; it is nobody's (:func:`load_command`).
    """
    from xcfg.plugin.inventory import PluginState

    usable = {info.distribution for info in session.inventory() if info.state is PluginState.AVAILABLE}
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        if isinstance(entry, Unreadable) or entry.dist is None or entry.name in reserved:
            continue
        if name_of(entry.dist) in usable:
            found.setdefault(entry.name, []).append(entry)
    return dict(sorted(found.items()))


def owners(entries: Sequence[EntryPoint]) -> list[str]:
    """The distributions that bring a command, in order of name."""
    return sorted(name_of(entry.dist) for entry in entries if entry.dist is not None)


def load_command(entries: Sequence[EntryPoint]) -> click.Command:
    """The command of an entry point. Raises PluginError, naming the distributions, where it cannot be had."""
    from xcfg.plugin.target import load_target

    names, entry = owners(entries), entries[0]
    if len(names) > 1:
        message = f"the command {entry.name!r} is registered by {' and '.join(names)}"
        raise PluginError(message, where=GROUP, hint="leave one out with -p no:NAME")
    owner = "".join(names) or entry.value
    command = load_target(entry.value, owner)
    if not isinstance(command, click.Command):
        raise PluginError(f"{entry.value} is not a click command", where=owner)
    return command
