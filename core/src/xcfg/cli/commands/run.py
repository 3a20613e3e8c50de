"""``xcfg run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from xcfg.cli.experiment import Selection, planned, selection_options, tell_observers
from xcfg.cli.output import document, emit, json_option
from xcfg.cli.session import Session
from xcfg.exitcodes import ExitCode
from xcfg.model.json import Json

if TYPE_CHECKING:
    from xcfg.model.plan import Plan
    from xcfg.plugin.registry import Registry
    from xcfg.runner.options import RunOptions


@click.command()
@selection_options
@click.option("--out", type=click.Path(path_type=Path), help="Output folder (default: runs/NAME).")
@click.option("--resume/--no-resume", default=True, help="Reuse sealed side runs (default) or execute all again.")
@click.option("--timeout", type=click.FloatRange(min=1), default=900.0, show_default=True, help="Seconds a side run.")
@click.option("--jobs", type=click.IntRange(min=1), help="Engines at once (default: what memory and cores allow).")
@click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Score K times a side run.")
@click.option("--retry", type=click.IntRange(min=0), default=0, show_default=True, help="Retries of failed launches.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first side run that fails.")
@click.option("--dry-run", is_flag=True, help="Print the plan and execute nothing.")
@click.option("--allow-fake", is_flag=True, help="Accept fake scorers; every output is marked.")
@click.option("--strict", is_flag=True, help="An unsupported case is an error.")
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    out: Path | None,
    resume: bool,
    timeout: float,
    jobs: int | None,
    repeat: int,
    retry: int,
    fail_fast: bool,
    dry_run: bool,
    allow_fake: bool,
    strict: bool,
    as_json: bool,
    **selected: Any,
) -> None:
    """Execute EXPERIMENT on its engines, compare both sides, write the cube and print the report."""
    session: Session = ctx.obj
    registry = session.registry(allow_fake=allow_fake)
    selection = Selection(**selected)
    plan = planned(selection, registry)
    if dry_run:
        from xcfg.cli.commands.plan import print_plan, refuse_unsupported, summary

        if strict:
            refuse_unsupported(plan)
        content = document("plan", **summary(plan, registry))
        emit(session, as_json, content, lambda screen: print_plan(screen, content))
        return
    from xcfg.cli.commit import commit_run
    from xcfg.cli.staged import SKIPPED, first_stage, needs_pairs, together
    from xcfg.runner.options import RunOptions

    options = RunOptions(timeout=timeout, resume=resume, repeat=repeat, retry=retry, fail_fast=fail_fast)
    options = evolve(options, jobs=jobs) if jobs else options
    folder = out if out is not None else Path("runs") / plan.experiment.name
    first = first_stage(selection)
    if first is not None:
        early = planned(first, registry)
        report, outcomes = _executed(session, early, registry, folder, options)
        if needs_pairs(selection, registry, outcomes):
            options = evolve(options, resume=True)  # what was executed a moment ago is not executed again
            second, outcomes = _executed(session, plan, registry, folder, options)
            report = together(report, second)
        else:
            plan = early
            click.echo(f"xcfg: {SKIPPED}", err=True)
    else:
        report, outcomes = _executed(session, plan, registry, folder, options)
    for case in plan.runnable:
        tell_observers(registry, "xcfg_case_started", case=case)
    commit_run(folder, report, outcomes, registry)
    code = _finish(session, as_json, strict, folder, plan, report, outcomes)
    ctx.exit(code)


def _executed(session: Session, plan: Plan, registry: Registry, folder: Path, options: RunOptions) -> Any:
    """The report of executing a plan and its judged cases."""
    from xcfg.cli.judge import contract_of, judge
    from xcfg.cli.progress import progress
    from xcfg.cube.layout import fresh_layout
    from xcfg.runner.execute import execute

    fresh_layout(plan)  # two cases in one cell are found before any engine is built
    with progress(session, plan) as on_event:
        report = execute(plan, registry, folder, options, on_event=on_event)
    return report, judge(plan, report, contract_of(plan, registry))


def _finish(
    session: Session, as_json: bool, strict: bool, folder: Path, plan: Plan, report: Any, outcomes: Any
) -> ExitCode:
    from xcfg.cli.documents import case_document, counts, verdict
    from xcfg.model.codec import unstructure
    from xcfg.report.terminal import print_report

    status, code = verdict(outcomes, strict=strict)
    content: dict[str, Json] = document(
        "run",
        status,
        out=str(folder),
        name=plan.experiment.name,
        fake=report.fake,
        counts=counts(outcomes, len(plan.cases) - len(outcomes)),
        engines=unstructure(report.engines),
        wall_s=report.wall_s,
        engine_s=report.engine_s,
        cases=[case_document(outcome) for outcome in outcomes],
    )
    emit(session, as_json, content, lambda screen: print_report(screen, content))
    return code
