"""How `xcfg run` executes: options of the command line that no experiment file holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from xcfg.cli.placing import Placing
    from xcfg.runner.options import RunOptions

_OPTIONS = (
    click.option("--resume/--no-resume", default=True, help="Reuse sealed side runs (default) or execute all again."),
    click.option("--jobs", type=click.IntRange(min=1), help="Engines at once (default: what memory and cores allow)."),
    click.option(
        "--repeat",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Score K times a side run; what differs is a finding.",
    ),
    click.option(
        "--retry", type=click.IntRange(min=0), default=0, show_default=True, help="Retries of failed launches."
    ),
    click.option("--fail-fast", is_flag=True, help="Stop at the first side run that fails."),
    click.option(
        "--only",
        type=click.Choice(["rollout", "training"]),
        help="Execute the side runs of one side; a later run adds the other.",
    ),
    click.option("--no-share", is_flag=True, help="An engine of its own for every side of every case: a cross-check."),
)


def execution_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which hands their values to :func:`run_options`."""
    for decorate in reversed(_OPTIONS):
        command = decorate(command)
    return command


def run_options(given: dict[str, Any], placing: Placing) -> RunOptions:
    """The options of an execution; their values are taken out of ``given``."""
    from xcfg.model.scorer import Role
    from xcfg.runner.options import RunOptions

    only = given.pop("only")
    return RunOptions(
        share=not given.pop("no_share"),
        only=None if only is None else Role(only),
        timeout=placing.timeout,
        start_timeout=placing.start_timeout,
        stop_timeout=placing.stop_timeout,
        **{name: given.pop(name) for name in ("resume", "jobs", "repeat", "retry", "fail_fast")},
    )
