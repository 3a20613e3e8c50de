"""``xcfg cube``: query and export; what keeps a folder is in :mod:`xcfg.cli.commands.cube_folder`."""

from __future__ import annotations

import io
from pathlib import Path

import click

from xcfg.cli.commands.cube_folder import compact, merge, rebuild, upload, verify
from xcfg.cli.output import document, emit, json_option, print_out, table
from xcfg.cli.session import Session
from xcfg.exitcodes import ExitCode

_BRIEF = ["case_id", "name", "status", "dtype", "max_abs_dlogp", "threshold", "mean_abs_dlogp", "active_tokens"]
"""Fields of the table where none are selected: as many as a terminal shows."""

_FILES = ["csv", "parquet", "json", "netcdf"]

_where = click.option("--where", default="", help="Condition, for example: status == fail and max_abs_dlogp > 0.1")
_select = click.option("--select", "selected", multiple=True, metavar="FIELD", help="Fields (repeat for several).")


@click.group()
def cube() -> None:
    """Query, export, verify, merge, compact, rebuild or upload the results of a run."""


@cube.command()
@click.argument("place", metavar="DIR")
@_where
@_select
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True,
    help="How the rows are printed.",
)  # fmt: skip
@json_option
@click.pass_context
def query(ctx: click.Context, place: str, where: str, selected: tuple[str, ...], form: str, as_json: bool) -> None:
    """Print the planned cases of DIR that meet a condition (status not_run: not executed); exit 5 where none does.

    DIR is the folder of a run, a cube, or the URL that a run was uploaded to.
    """
    from xcfg.cli.keep.opened import opened
    from xcfg.cube.export import table_of
    from xcfg.cube.formats import text_of, write_csv
    from xcfg.cube.query import rows as find

    session: Session = ctx.obj
    as_json = as_json or form == "json"
    fields = _fields(selected) or ([] if as_json or form == "csv" else _BRIEF)
    with opened(place) as found:
        rows = find(found, where, fields)
    status, code = ("pass", ExitCode.PASS) if rows else ("nothing", ExitCode.NOTHING)
    if form == "csv" and not as_json:
        text = io.BytesIO()
        if rows:
            write_csv(table_of(rows), text)
        print_out(text.getvalue().decode(), newline=False)
    else:
        headings = list(rows[0]) if rows else fields
        cells = [[text_of(row[key]) for key in headings] for row in rows]
        content = document("cube.query", status, rows=rows)
        emit(session, as_json, content, lambda screen: table(screen, headings, cells))
    ctx.exit(code)


@cube.command()
@click.argument("place", metavar="DIR")
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@_where
@_select
@click.option("--format", "form", type=click.Choice(_FILES), help="Default: the suffix of FILE (netcdf: .nc).")
@click.option("--tokens", is_flag=True, help="One row a token: logprobs of both sides, token id, position, ranks.")
@click.option("--force", is_flag=True, help="Replace FILE where it is there already.")
@json_option
@click.pass_context
def export(
    ctx: click.Context,
    place: str,
    target: Path,
    where: str,
    selected: tuple[str, ...],
    form: str | None,
    tokens: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write the planned cases of DIR that meet a condition, or their tokens, to FILE; exit 5 where there is no row.

    DIR is the folder of a run, a cube, or the URL that a run was uploaded to.
    """
    from xcfg.cli.keep.export import check_target, format_of, write_table
    from xcfg.cli.keep.opened import opened
    from xcfg.cube.export import case_table, token_table

    session: Session = ctx.obj
    kind = format_of(target, form)
    check_target(target, force=force)
    with opened(place) as found:
        rows = (token_table if tokens else case_table)(found, where, _fields(selected))
        count = 0 if rows.empty else write_table(rows, target, kind, force=force)
    status, code = ("pass", ExitCode.PASS) if count else ("nothing", ExitCode.NOTHING)
    content = document("cube.export", status, file=str(target) if count else None, format=kind, rows=count)
    told = f"wrote {count} rows to {target}" if count else "no row meets the condition; nothing was written"
    emit(session, as_json, content, lambda screen: screen.print(told, markup=False))
    ctx.exit(code)


def _fields(selected: tuple[str, ...]) -> list[str]:
    return [name for item in selected for name in item.split(",") if name]


for _command in (verify, merge, compact, rebuild, upload):
    cube.add_command(_command)
