"""Entry point ``xcfg``: global options, lazy commands, exit codes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from xcfg.cli.lazy import LazyGroup
from xcfg.exitcodes import ExitCode

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from xcfg.cli.session import Session

_FEW_COLLECTIONS = 50_000
"""Objects made before Python looks for cycles among them. A plan is tens of thousands of small values without any."""

COMPLETE = "_XCFG_COMPLETE"
"""Variable by which a shell asks for completions."""

COMMANDS = {
    "init": ("xcfg.cli.commands.init:init", "Write a commented experiment that runs."),
    "plan": ("xcfg.cli.commands.plan:plan", "Expand and validate an experiment; imports no engine."),
    "validate": ("xcfg.cli.commands.plan:validate", "Check an experiment and print nothing but faults."),
    "run": ("xcfg.cli.commands.run:run", "Execute an experiment, compare both sides, write the cube."),
    "search": ("xcfg.cli.commands.search:search", "Find and verify the smallest set of knobs to align."),
    "gate": ("xcfg.cli.commands.gate:gate", "Run what a gate file pins and say pass or fail for CI."),
    "explain": ("xcfg.cli.commands.explain:explain", "Say what the executed cases of a run prove."),
    "compare": ("xcfg.cli.commands.compare:compare", "Compare recorded logprobs of any framework; runs no engine."),
    "report": ("xcfg.cli.commands.report:report", "Print the report of an executed run."),
    "show": ("xcfg.cli.commands.show:show", "Show one case with its provenance."),
    "cube": ("xcfg.cli.commands.cube:cube", "Query, export, verify, merge, compact or upload results."),
    "knobs": ("xcfg.cli.commands.registered:knobs", "List or show knobs."),
    "scorers": ("xcfg.cli.commands.registered:scorers", "List or show scorers."),
    "backends": ("xcfg.cli.commands.registered:backends", "List, show or check kernel backends."),
    "contracts": ("xcfg.cli.commands.registered:contracts", "List or show tolerance contracts."),
    "importers": ("xcfg.cli.commands.registered:importers", "List or show importers of recorded logprobs."),
    "plugins": ("xcfg.cli.commands.plugins:plugins", "List, check, trace or describe plugins."),
    "doctor": ("xcfg.cli.commands.doctor:doctor", "Tell what is installed and what is missing."),
    "completion": ("xcfg.cli.commands.completion:completion", "Print what completes commands in a shell."),
    "schema": ("xcfg.cli.commands.schema:schema", "Print the JSON Schema of experiment files."),
}


def _session(ctx: click.Context) -> Session:
    """What the global options said. Raises UsageError for what ``-p`` does not understand."""
    from xcfg.cli.session import Session  # attrs costs as much as click: not needed to print help

    given = ctx.params
    disabled = []
    for item in given["plugin"]:
        if not item.startswith("no:") or len(item) == len("no:"):
            raise click.UsageError(f"-p {item}: only no:NAME is understood, which leaves the plugin NAME out.", ctx)
        disabled.append(item.removeprefix("no:"))
    return Session(
        verbose=given["verbose"],
        quiet=given["quiet"],
        color=given["color"],
        disabled=tuple(disabled),
        plugins=not given["no_plugins"],
    )


def _mounted(ctx: click.Context) -> Mapping[str, Sequence[EntryPoint]]:
    """Looked for once a call: click asks for a command's name, then for the command."""
    from xcfg.cli.mounted import GROUP, command_entries

    if GROUP not in ctx.meta:
        ctx.meta[GROUP] = command_entries(_session(ctx), COMMANDS)
    found: Mapping[str, Sequence[EntryPoint]] = ctx.meta[GROUP]
    return found


@click.group(
    cls=LazyGroup,
    commands_table=COMMANDS,
    mounted=_mounted,
    epilog="Plugins may add commands: `xcfg plugins list` names them.",
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "XCFG"},
)
@click.version_option(package_name="xcfg", prog_name="xcfg", allow_from_autoenv=False)  # images set XCFG_VERSION
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks of errors.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
@click.option("--color/--no-color", default=None, help="Force colour on or off (default: NO_COLOR and the terminal).")
@click.option("-p", "plugin", multiple=True, metavar="no:NAME", help="Leave a plugin out.")
@click.option("--no-plugins", is_flag=True, help="Use core's own plugin only.")
@click.pass_context
def cli(ctx: click.Context, /, **_: object) -> None:
    """Find the smallest set of settings under which rollout and training agree on logprobs."""
    ctx.obj = _session(ctx)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a code of ``xcfg.exitcodes``.

    click exits 1 for some of its own errors and Python exits 1 for an uncaught exception, both of which would read
    as drift; every way out is mapped here.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(_FEW_COLLECTIONS)
    if COMPLETE in os.environ:  # a shell asks; click answers and exits by itself
        cli.main(args=arguments, prog_name="xcfg", complete_var=COMPLETE)
    try:
        code = cli.main(args=arguments, prog_name="xcfg", standalone_mode=False)
    except BaseException as error:
        from xcfg.cli.failure import report_failure

        sys.exit(report_failure(error, arguments))
    sys.exit(code if isinstance(code, int) else ExitCode.PASS)
