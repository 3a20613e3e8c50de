"""A click group whose commands are named by import string and imported when called, plugins' after core's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """``commands_table`` maps a command's name to (``module:attribute``, one-line help).

    ``mounted`` finds further commands by name. That costs more than core's own commands do, so it is asked last.
    """

    def __init__(
        self,
        *args: Any,
        commands_table: Mapping[str, tuple[str, str]] | None = None,
        mounted: Callable[[click.Context], Mapping[str, Sequence[EntryPoint]]] = lambda _: {},
        **kwargs: Any,
    ) -> None:
        """Keep the table; nothing of it is imported yet."""
        super().__init__(*args, **kwargs)
        self._table = dict(commands_table or {})
        self._mounted = mounted

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return [*self._table, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None where the name is unknown."""
        if cmd_name in self._table:
            module, attribute = self._table[cmd_name][0].split(":")
            command = getattr(import_module(module), attribute)
            if not isinstance(command, click.Command):
                raise TypeError(f"{module}:{attribute} is not a click command")
        elif (entries := self._mounted(ctx).get(cmd_name)) is not None:
            from xcfg.cli.mounted import load_command

            command = load_command(entries)
        else:
            return super().get_command(ctx, cmd_name)
        name_variables(command, f"{ctx.auto_envvar_prefix}_{cmd_name}".upper())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest known name in the error."""
        name = args[0] if args else ""
        if args and name not in self._table and not name.startswith("-") and name not in self._mounted(ctx):
            import difflib

            near = difflib.get_close_matches(name, [*self._table, *self._mounted(ctx)], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names and one-line help from the table alone, then the group's own options."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=row[1]) for name, row in self._table.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table alone."""
        rows = [(name, self._table[name][1]) for name in self._table]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def name_variables(command: click.Command, prefix: str) -> None:
    """Name each option's variable after what a user types: ``XCFG_RUN_SLICE``, not after the argument of a function."""
    for item in command.params:
        if isinstance(item, click.Option):
            typed = max(item.opts, key=len).lstrip("-").replace("-", "_")
            item.envvar = f"{prefix}_{typed.upper()}"
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            name_variables(inner, f"{prefix}_{name.upper()}")
