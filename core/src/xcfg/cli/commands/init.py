"""``xcfg init``."""

from __future__ import annotations

from pathlib import Path

import click

from xcfg.cli.output import document, emit, json_option
from xcfg.cli.session import Session
from xcfg.errors import InvalidInput

_KINDS = ("plugin", "kernel", "importer")
"""These words begin a distribution; a model directory called by one of them is given as ``./plugin``."""
_EXPERIMENT = Path("experiment.yaml")


@click.command()
@click.argument("what", metavar="CHECKPOINT|plugin|kernel|importer")
@click.argument("name", metavar="[NAME]", required=False)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path),
    help="The experiment file to write (default: experiment.yaml), or the distribution's folder (default: xcfg-NAME).",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace the files of an experiment that are there.")
@json_option
@click.pass_obj
def init(session: Session, what: str, name: str | None, output: Path | None, force: bool, as_json: bool) -> None:
    """Write a commented experiment for the model directory CHECKPOINT, and its prompts beside it.

    With the word plugin, kernel or importer and a NAME, write a distribution xcfg-NAME that installs, registers and
    passes the conformance kit. A model directory called by one of these words is given as ./plugin.
    """
    if what in _KINDS:
        folder = output or Path(f"xcfg-{name}")
        files = _distribution(session, what, name, folder, force)
        told = f"wrote {len(files)} files in {folder}; README.md there says how to go on"
    elif name is not None:
        raise InvalidInput(
            f"{what!r} cannot be begun", where="init", hint=f"give one of {', '.join(_KINDS)} and a NAME"
        )
    else:
        files = _experiment(Path(what), output or _EXPERIMENT, force)
        told = f"wrote {', '.join(map(str, files))}"
    names = [str(path) for path in files]
    emit(session, as_json, document("init", files=names), lambda out: out.print(told, markup=False))


def _experiment(checkpoint: Path, output: Path, force: bool) -> list[Path]:
    from xcfg.planner.init import init_experiment
    from xcfg.runner.durable import replace

    files = init_experiment(checkpoint, output)
    taken = [path for path in files if path.exists()]
    if taken and not force:
        raise InvalidInput(f"{taken[0]} is there already", where="--output", hint="choose another name or give --force")
    if not output.parent.is_dir():
        raise InvalidInput(f"no folder {output.parent}", where="--output", hint="make it first")
    for path, text in files.items():
        replace(path, text.encode())
    return list(files)


def _distribution(session: Session, kind: str, name: str | None, folder: Path, force: bool) -> list[Path]:
    from xcfg.scaffold.names import new_names
    from xcfg.scaffold.render import rendered
    from xcfg.scaffold.taken import refuse_taken
    from xcfg.scaffold.write import write_distribution

    if name is None:
        raise InvalidInput(
            f"{kind} needs the NAME of the new distribution",
            where="NAME",
            hint=f"xcfg init {kind} NAME; a model directory of this name is ./{kind}",
        )
    if force:
        hint = "choose another folder with --output"
        raise InvalidInput("a distribution never replaces files that are there", where="--force", hint=hint)
    names = new_names(name)
    refuse_taken(kind, names, session.registry(allow_fake=True))
    files = rendered(kind, names)
    write_distribution(folder, files)
    return [folder / path for path in files]
