"""``xcfg run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcfg.cli.execution_options import execution_options, run_options
from xcfg.cli.experiment import Selection, planned, selection_options, tell_observers
from xcfg.cli.output import document, emit, json_option
from xcfg.cli.placing import Placing, placing_options
from xcfg.cli.session import Session
from xcfg.cli.written import check_written, write, written_options
from xcfg.exitcodes import ExitCode
from xcfg.model.json import Json

if TYPE_CHECKING:
    from xcfg.cli.executing import Executed
    from xcfg.runner.options import RunOptions


@click.command()
@selection_options
@click.option("--limit", type=click.IntRange(min=1), help="Smoke test: at most N active tokens, marked in the output.")
@click.option("--out", type=click.Path(path_type=Path), help="Output folder (default: runs/NAME).")
@execution_options
@placing_options
@click.option("--dry-run", is_flag=True, help="Print plan and schedule: engines, reuse, time; execute nothing.")
@click.option("--allow-fake", is_flag=True, help="Accept fake scorers; every output is marked.")
@click.option("--strict", is_flag=True, help="An unsupported case is an error.")
@click.option("--json-lines", is_flag=True, help="Print progress as JSON, one event a line, on standard error.")
@written_options
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    out: Path | None,
    dry_run: bool,
    allow_fake: bool,
    strict: bool,
    json_lines: bool,
    junit: Path | None,
    markdown: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Execute EXPERIMENT on its engines, compare both sides, write the cube and print the report."""
    from xcfg.cli.interpreters import check_interpreters
    from xcfg.runner.schedule import side_configs

    session: Session = ctx.obj
    reports = {"junit": junit, "markdown": markdown}
    check_written(reports, executed=not dry_run)
    placing = Placing.taken(given)
    options = run_options(given, placing)
    selection = Selection(**given)
    registry = session.registry(allow_fake=allow_fake, interpreters=placing.interpreters)
    plan = planned(selection, registry)
    folder = out if out is not None else Path("runs") / plan.experiment.name
    check_interpreters(side_configs(plan), registry)
    if dry_run:
        from xcfg.cli.dry_run import show_schedule

        show_schedule(session, selection, plan, registry, folder, options, strict=strict, as_json=as_json)
        return
    from xcfg.cli.executing import Executing
    from xcfg.cli.progress import progress

    with placing.opened(registry) as executor, progress(session, folder, json_lines=json_lines) as told:
        told.started({"name": plan.experiment.name, "out": str(folder), "limited": plan.limit})
        executing = Executing(registry=registry, folder=folder, options=options, told=told, executor=executor)
        done = executing.selected(selection, plan)
        from xcfg.cli.commit import commit_run  # what comes after the engines is imported after them

        for case in done.plan.runnable:
            tell_observers(registry, "xcfg_case_started", case=case)
        commit_run(folder, done.report, done.outcomes, registry)
        content, code = _document(done, folder, options, strict=strict)
        told.finished(content, code)
    from xcfg.report.terminal import print_report

    write(reports, content)
    emit(session, as_json, content, lambda screen: print_report(screen, content))
    ctx.exit(code)


def _document(done: Executed, folder: Path, options: RunOptions, *, strict: bool) -> tuple[dict[str, Json], ExitCode]:
    from xcfg.cli.documents import counts, verdict
    from xcfg.cli.executed_document import executed_document
    from xcfg.cli.one_side import one_side_verdict, side_document
    from xcfg.model.codec import unstructure

    plan, report, outcomes = done.plan, done.report, done.outcomes
    sides: dict[str, Json] = {}
    status, code = verdict(outcomes, strict=strict)
    if options.only is not None:
        sides = side_document(plan, report, options.only)
        status, code = one_side_verdict(outcomes, sides, strict=strict)
    content = document(
        "run",
        status,
        out=str(folder),
        name=plan.experiment.name,
        fake=report.fake,
        limited=plan.limit,
        counts=counts(plan, outcomes),
        engines=unstructure(report.engines),
        wall_s=report.wall_s,
        engine_s=report.engine_s,
        **({"sides": sides} if sides else {}),
        cases=[executed_document(outcome) for outcome in outcomes],
    )
    return content, code
