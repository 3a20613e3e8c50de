"""The arguments every command that takes an experiment shares, and the plan they select."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from xcfg.model.experiment import Mode
from xcfg.planner.counting import MAX_CASES

if TYPE_CHECKING:
    from xcfg.model.plan import Plan
    from xcfg.plugin.registry import Registry


@frozen(kw_only=True)
class Selection:
    """Which experiment, which of its cases, and at most how many active tokens; all where ``limit`` is None."""

    experiment: Path
    overrides: tuple[str, ...] = ()
    mode: str | None = None
    profiles: tuple[str, ...] = ()
    slice_name: str = ""
    filters: tuple[str, ...] = ()
    max_cases: int = MAX_CASES
    limit: int | None = None


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the experiment, its overrides and the selection options to a command."""
    decorators = [
        click.argument("experiment", type=click.Path(path_type=Path)),
        click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]..."),
        click.option("--mode", type=click.Choice([mode.value for mode in Mode]), help="Instead of the file's mode."),
        click.option("--profile", "profiles", multiple=True, metavar="NAME",
                     help="Cases of an ablation profile (A0 to A5, a plugin's, the file's) instead of the axes'."),
        click.option("--slice", "slice_name", default="", help="Only cases of this slice, the file's or a plugin's."),
        click.option("--filter", "filters", multiple=True, metavar="KNOB=VALUE", help="Only cases with this value."),
        click.option("--max-cases", type=click.IntRange(min=1), default=MAX_CASES, show_default=True,
                     help="Refuse a larger plan."),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def planned(selection: Selection, registry: Registry) -> Plan:
    """Load the experiment and expand it."""
    from xcfg.planner.build import build_plan
    from xcfg.planner.load import load_experiment

    loaded = load_experiment(selection.experiment, selection.overrides, registry=registry)
    plan = build_plan(
        loaded.experiment,
        root=loaded.root,
        registry=registry,
        mode=Mode(selection.mode) if selection.mode else None,
        profiles=selection.profiles,
        slice_name=selection.slice_name,
        filters=selection.filters,
        max_cases=selection.max_cases,
        limit=selection.limit,
    )
    tell_observers(registry, "xcfg_plan_built", plan=plan)
    return plan


def tell_observers(registry: Registry, hook: str, **arguments: Any) -> None:
    """Call an observing hook; an observer that fails is named on standard error and changes nothing."""
    for failed in registry.notify(hook, **arguments):
        click.echo(f"xcfg: {failed}", err=True)
