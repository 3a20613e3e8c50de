"""``xcfg report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcfg.cli.output import document, emit, json_option
from xcfg.cli.session import Session
from xcfg.cli.written import check_written, write, written_options

if TYPE_CHECKING:
    from xcfg.report.text import TokenText


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write one HTML file.")
@click.option(
    "--tokenizer", type=click.Path(path_type=Path), help="Folder of a tokenizer, for the text of tokens in HTML."
)
@written_options
@json_option
@click.pass_context
def report(
    ctx: click.Context, /, folder: Path, html: Path | None, tokenizer: Path | None, as_json: bool, **given: Any
) -> None:
    """Print the report of the run in DIR, judged again from the stored tensors."""
    from xcfg.cli.documents import counts, verdict
    from xcfg.cli.executed_document import executed_document
    from xcfg.cli.stored import load_judged
    from xcfg.report.terminal import print_report

    session: Session = ctx.obj
    check_written({**given, "html": html})
    text = _text(tokenizer) if html is not None else None
    registry = session.registry(allow_fake=True)
    plan, run, outcomes = load_judged(folder, registry)
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
    if html is not None:
        from xcfg.cli.html import write_html

        write_html(html, folder, registry, content, (plan, run, outcomes), text)
    emit(session, as_json, content, lambda screen: print_report(screen, content))
    ctx.exit(code)


def _text(tokenizer: Path | None) -> TokenText | None:
    """What the page needs beside the run, before anything is judged for it."""
    from xcfg.report.html.page import check_html
    from xcfg.report.text import TokenText

    check_html()
    return None if tokenizer is None else TokenText.load(tokenizer)
