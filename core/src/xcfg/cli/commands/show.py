"""``xcfg show``."""

from __future__ import annotations

from pathlib import Path

import click

from xcfg.cli.output import document, emit, json_option
from xcfg.cli.session import Session
from xcfg.errors import InvalidInput


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("case")
@click.option("--tokens", type=click.IntRange(min=0), default=0, help="Also show the N worst tokens.")
@click.option(
    "--tokenizer", type=click.Path(path_type=Path), default=None, help="Folder of a tokenizer, to show tokens as text."
)
@click.option("--per-rank", is_flag=True, help="Also show the metrics of every pair of ranks.")
@json_option
@click.pass_context
def show(
    ctx: click.Context, folder: Path, case: str, tokens: int, tokenizer: Path | None, per_rank: bool, as_json: bool
) -> None:
    """Show one CASE (id, its beginning, or name) of the run in DIR with its provenance."""
    from xcfg.cli.commands.plan import find_case
    from xcfg.cli.documents import case_document, in_context, verdict
    from xcfg.cli.measured import measured_documents
    from xcfg.cli.stored import load_judged
    from xcfg.cli.surroundings import difference_documents
    from xcfg.comparator.blocks import TokenPairs
    from xcfg.comparator.worst import worst_tokens
    from xcfg.report.case import print_case
    from xcfg.report.text import TokenText

    session: Session = ctx.obj
    text = None if tokenizer is None else TokenText.load(tokenizer)
    plan, run, outcomes = load_judged(folder, session.registry(allow_fake=True))
    wanted = find_case(plan, case)
    outcome = next((item for item in outcomes if item.case.id == wanted.id), None)
    if outcome is None:
        reason = wanted.rejected.reason if wanted.rejected else "it was not executed"
        raise InvalidInput(f"case {wanted.id} has no result: {reason}", where="CASE")
    status, code = verdict([outcome])
    held = outcome.tokens if outcome.comparison.status.judged else None
    worst = [] if held is None else worst_tokens(TokenPairs(held), tokens)
    content = document(
        "show",
        status,
        fake=run.fake,
        limited=plan.limit,
        case={**case_document(outcome), "measured": measured_documents(outcome)},
        differences=difference_documents(folder, outcome),
        tokens=[in_context(item, text) for item in worst],
    )
    emit(session, as_json, content, lambda screen: print_case(screen, content, per_rank=per_rank))
    ctx.exit(code)
