"""``xcfg explain``."""

from __future__ import annotations

from pathlib import Path

import click

from xcfg.cli.output import emit, json_option
from xcfg.cli.session import Session

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("folder", metavar="DIR", type=_PATH)
@click.option(
    "--curves",
    multiple=True,
    metavar="[CASE=]FILE",
    help="Training curves (CSV, JSONL, JSON) of the baseline, or of a CASE, for the decision rules.",
)
@click.option("--evidence", type=_PATH, metavar="OUT", help="Write what a fix has to show into this folder.")
@json_option
@click.pass_context
def explain(ctx: click.Context, folder: Path, curves: tuple[str, ...], evidence: Path | None, as_json: bool) -> None:
    """Say what the executed cases in DIR prove: smallest sets, ladder level, findings, costs, and what is missing."""
    from xcfg.cli.search.case_curves import CaseCurves, read_case_curves
    from xcfg.cli.search.document import ending
    from xcfg.cli.search.evidence import unpinnable, write_evidence
    from xcfg.cli.search.explained import explained
    from xcfg.cli.stored import check_folder
    from xcfg.report.search import print_search
    from xcfg.runner.artifacts import load_plan

    session: Session = ctx.obj
    registry = session.registry(allow_fake=True)
    check_folder(folder)
    read = read_case_curves(curves, load_plan(folder)) if curves else CaseCurves()
    content, claim, executor = explained(folder, registry, read)
    if evidence is not None and (why := unpinnable(claim, executor)):
        click.echo(f"xcfg: {evidence} was not written: {why}", err=True)
    elif evidence is not None:
        write_evidence(evidence, claim, executor)
    emit(session, as_json, content, lambda screen: print_search(screen, content))
    ctx.exit(ending(claim)[1])
