"""``xcfg cube query|rebuild``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import click

from xcfg.cli.output import document, emit, json_option, print_out, table
from xcfg.cli.session import Session
from xcfg.exitcodes import ExitCode
from xcfg.model.json import Json

_BRIEF = ["case_id", "name", "status", "dtype", "max_abs_dlogp", "threshold", "mean_abs_dlogp", "active_tokens"]
"""Fields of the table where none are selected: as many as a terminal shows."""


@click.group()
def cube() -> None:
    """Query or rebuild the result cube of a run."""


@cube.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--where", default="", help="Condition, for example: status == fail and max_abs_dlogp > 0.1")
@click.option("--select", "selected", multiple=True, metavar="FIELD", help="Fields to print (repeat for several).")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@json_option
@click.pass_context
def query(ctx: click.Context, folder: Path, where: str, selected: tuple[str, ...], form: str, as_json: bool) -> None:
    """Print the planned cases of DIR that meet a condition (status not_run: not executed); exit 5 where none does."""
    from xcfg.cube.query import query as run_query

    session: Session = ctx.obj
    as_json = as_json or form == "json"
    fields = [name for item in selected for name in item.split(",")] or ([] if as_json or form == "csv" else _BRIEF)
    rows = run_query(_store(folder), where, fields)
    status, code = ("pass", ExitCode.PASS) if rows else ("nothing", ExitCode.NOTHING)
    if form == "csv" and not as_json:
        print_out(_csv(rows), newline=False)
    else:
        headings = list(rows[0]) if rows else fields
        cells = [[_text(row[key]) for key in headings] for row in rows]
        content = document("cube.query", status, rows=rows)
        emit(session, as_json, content, lambda screen: table(screen, headings, cells))
    ctx.exit(code)


@cube.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def rebuild(session: Session, folder: Path, as_json: bool) -> None:
    """Make the cube of DIR again from its sealed attempts."""
    from xcfg.cli.commit import CUBE, rebuild_run
    from xcfg.cli.stored import check_folder
    from xcfg.runner.lock import locked

    check_folder(folder)
    with locked(folder):
        cases = rebuild_run(folder, session.registry(allow_fake=True))
    content = document("cube.rebuild", cube=str(folder / CUBE), cases=cases)
    emit(session, as_json, content, lambda screen: screen.print(f"rebuilt {folder / CUBE}", markup=False))


def _store(folder: Path) -> Path:
    """The cube itself, or the one inside a run's folder."""
    from xcfg.cli.commit import CUBE

    return folder if (folder / "zarr.json").is_file() else folder / CUBE


def _csv(rows: list[dict[str, Json]]) -> str:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _text(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
