"""``xcfg report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from xcfg.cli.output import document, emit, json_option
from xcfg.cli.session import Session
from xcfg.cli.written import check_written, write, written_options


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@written_options
@json_option
@click.pass_context
def report(ctx: click.Context, /, folder: Path, as_json: bool, **given: Any) -> None:
    """Print the report of the run in DIR, judged again from the stored tensors."""
    from xcfg.cli.documents import counts, verdict
    from xcfg.cli.executed_document import executed_document
    from xcfg.cli.stored import load_judged
    from xcfg.report.terminal import print_report

    session: Session = ctx.obj
    check_written(given)
    plan, run, outcomes = load_judged(folder, session.registry(allow_fake=True))
    status, code = verdict(outcomes)
    content = document(
        "report",
        status,
        out=str(folder),
        name=plan.experiment.name,
        fake=run.fake,
        limited=plan.limit,
        counts=counts(plan, outcomes),
        cases=[executed_document(outcome) for outcome in outcomes],
    )
    write(given, content)
    emit(session, as_json, content, lambda screen: print_report(screen, content))
    ctx.exit(code)
