"""``xcfg compare``."""

from __future__ import annotations

from pathlib import Path

import click

from xcfg.cli.output import emit, json_option
from xcfg.cli.session import Session

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("rollout", type=_PATH)
@click.argument("train", type=_PATH)
@click.option("--format", "format", default="auto", metavar="auto|ID", help="Layout of the files (importers list).")
@click.option("--map", "columns", multiple=True, metavar="FIELD=COLUMN", help="Take a field from another column.")
@click.option("--dtype", default="", help="Compute dtype of records that state none: float32, bfloat16, float16, ...")
@click.option("--contract", default="", metavar="ID|FILE", help="Tolerance contract instead of the shipped one.")
@click.option("--names", default="", metavar="verl|trl|nemo-rl", help="Also under a framework's own metric names.")
@click.option("--curves", type=_PATH, default=None, help="Training curves (CSV, JSONL, JSON) for the decision rules.")
@click.option("--tokenizer", type=_PATH, default=None, help="Folder of the tokenizer, to show tokens as text.")
@click.option("--tokens", type=click.IntRange(min=0), default=1, show_default=True, help="Worst tokens to show.")
@click.option("--per-rank", is_flag=True, help="Also show the metrics of every pair of ranks.")
@click.option("--strict", is_flag=True, help="A field that a side does not state makes the comparison invalid.")
@json_option
@click.pass_context
def compare(ctx: click.Context, /, *, as_json: bool, per_rank: bool, **options: object) -> None:
    """Compare recorded logprobs of ROLLOUT and TRAIN, files or folders, without an engine.

    Where one file holds both sides, name it twice.
    """
    from xcfg.cli.comparing import Wanted, compared
    from xcfg.report.comparison import print_comparison

    session: Session = ctx.obj
    content, code = compared(Wanted(**options), session)  # type: ignore[arg-type]
    emit(session, as_json, content, lambda screen: print_comparison(screen, content, per_rank=per_rank))
    ctx.exit(code)
