"""``xcfg init``."""

from __future__ import annotations

from pathlib import Path

import click

from xcfg.cli.output import document, emit, json_option
from xcfg.cli.session import Session
from xcfg.errors import InvalidInput


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("experiment.yaml"), show_default=True)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@json_option
@click.pass_obj
def init(session: Session, checkpoint: Path, output: Path, force: bool, as_json: bool) -> None:
    """Write a commented experiment for the model directory CHECKPOINT, and its prompts beside it."""
    from xcfg.planner.init import init_experiment

    files = init_experiment(checkpoint, output)
    taken = [path for path in files if path.exists()]
    if taken and not force:
        raise InvalidInput(f"{taken[0]} is there already", where="--output", hint="choose another name or give --force")
    if not output.parent.is_dir():
        raise InvalidInput(f"no folder {output.parent}", where="--output", hint="make it first")
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    names = [str(path) for path in files]
    emit(
        session,
        as_json,
        document("init", files=names),
        lambda out: out.print(f"wrote {', '.join(names)}", markup=False),
    )
