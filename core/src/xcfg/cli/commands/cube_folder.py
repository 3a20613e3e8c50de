"""``xcfg cube verify|merge|compact|rebuild|upload``: commands on the whole folder of a run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xcfg.cli.output import document, emit, json_option
from xcfg.cli.session import Session
from xcfg.exitcodes import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from xcfg.cli.keep.verify import Verified

_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


@click.command()
@click.argument("place", metavar="DIR")
@json_option
@click.pass_context
def verify(ctx: click.Context, place: str, as_json: bool) -> None:
    """Hash everything in DIR again and compare its cube with one rebuilt from the attempts; exit 6 if anything differs.

    DIR is the folder of a run, or the URL that it was uploaded to: it is then copied to a temporary folder first.
    """
    from xcfg.cli.keep.verify import verify_folder

    session: Session = ctx.obj
    with _local(place) as folder:
        found = verify_folder(folder, session.registry(allow_fake=True))
    status, code = ("invalid_artifact", ExitCode.INVALID) if found.problems else ("pass", ExitCode.PASS)
    problems = [{"path": item.path, "message": item.message} for item in found.problems]
    content = document("cube.verify", status, counts=found.counts(), cube=found.cube, problems=problems)
    emit(session, as_json, content, lambda screen: _print_verified(screen, place, found))
    ctx.exit(code)


@click.command()
@_folder
@click.argument("others", metavar="OTHER...", nargs=-1, required=True)
@json_option
@click.pass_context
def merge(ctx: click.Context, folder: Path, others: tuple[str, ...], as_json: bool) -> None:
    """Take over what other folders of the same experiment hold into DIR: sealed attempts, cases, ends of launches.

    OTHER is the folder of a run or the URL that one was uploaded to. Nothing in DIR is overwritten; another identity or
    token batch is refused before anything is written. Exit 6 where a damaged attempt was left out.
    """
    from xcfg.cli.keep.merge import merge_folders

    session: Session = ctx.obj
    with ExitStack() as stack:
        sources = {place: stack.enter_context(_local(place)) for place in others}
        taken = merge_folders(folder, sources, session.registry(allow_fake=True))
    status, code = ("invalid_artifact", ExitCode.INVALID) if taken.refused else ("pass", ExitCode.PASS)
    content = document(
        "cube.merge",
        status,
        taken=taken.taken,
        present=taken.present,
        cases=taken.cases,
        refused=[{"path": item.path, "message": item.message} for item in taken.refused],
    )

    def human(screen: Console) -> None:
        for item in taken.refused:
            screen.print(f"left out {item.path}: {item.message}", markup=False)
        told = f"{len(taken.taken)} attempts taken over, {taken.present} were here already, {taken.cases} new cases"
        screen.print(told, markup=False)

    emit(session, as_json, content, human)
    ctx.exit(code)


@click.command()
@_folder
@click.option("--dry-run", is_flag=True, help="List what would go and change nothing.")
@json_option
@click.pass_obj
def compact(session: Session, folder: Path, dry_run: bool, as_json: bool) -> None:
    """Remove what no result of DIR needs: leftovers of killed runs, attempts that were cut off; pack the cube anew.

    Sealed attempts and recorded failures always stay.
    """
    from xcfg.cli.keep.compact import compact_folder

    done = compact_folder(folder, session.registry(allow_fake=True), dry_run=dry_run)
    items = [{"path": str(item.path.relative_to(folder)), "bytes": item.size, "why": item.why} for item in done.removed]
    sizes = {"before": done.cube_before, "after": done.cube_after}
    content = document("cube.compact", dry_run=dry_run, removed=items, cube_bytes=sizes)

    def human(screen: Console) -> None:
        for item in items:
            verb = "would remove" if dry_run else "removed"
            screen.print(f"{verb} {item['path']} ({item['bytes']} bytes): {item['why']}", markup=False)
        total = sum(item.size for item in done.removed)
        cube = "" if dry_run else f"; cube {sizes['before']} -> {sizes['after']} bytes"
        screen.print(f"{len(items)} leftovers, {total} bytes{cube}", markup=False)

    emit(session, as_json, content, human)


@click.command()
@_folder
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


@click.command()
@_folder
@click.argument("url", metavar="URL")
@json_option
@click.pass_obj
def upload(session: Session, folder: Path, url: str, as_json: bool) -> None:
    """Bring URL (s3://BUCKET/PREFIX) up to what DIR holds: sealed attempts, recorded failures, plan, tokens, cube.

    What is there already is compared and not sent again; nothing there is overwritten by anything else. The usual AWS
    variables are read, AWS_ENDPOINT_URL and AWS_REGION among them. Exit 7 where the store fails.
    """
    from xcfg.cli.keep.upload import upload_folder
    from xcfg.cube.objects import connect

    sent = upload_folder(folder, connect(url, os.environ))
    content = document(
        "cube.upload", url=url, sent=sent.sent, bytes=sent.size, present=sent.present, removed=len(sent.removed)
    )
    told = f"{sent.sent} objects sent ({sent.size} bytes), {sent.present} were there already: {url}"
    emit(session, as_json, content, lambda screen: screen.print(told, markup=False))


@contextmanager
def _local(place: str) -> Iterator[Path]:
    """The folder itself, or a temporary copy of what lies at a URL."""
    from xcfg.cli.keep.fetch import fetch
    from xcfg.cube.objects import connect, is_url

    if not is_url(place):
        yield Path(place)
        return
    with tempfile.TemporaryDirectory(prefix="xcfg-fetched-") as copy:
        fetch(connect(place, os.environ), Path(copy))
        yield Path(copy)


def _print_verified(screen: Console, place: str, found: Verified) -> None:
    for item in found.problems:
        screen.print(f"{item.path}: {item.message}", markup=False)
    audit = found.audit
    cube = {"same": "the cube is what they give", "not_compared": "the cube was not compared"}.get(
        found.cube, f"the cube {'is missing' if found.cube == 'missing' else found.cube}"
    )
    verdict = f"{len(found.problems)} problems" if found.problems else "everything holds"
    told = f"{place}: {audit.attempts} sealed attempts, {audit.payloads} payloads, {audit.failures} recorded failures"
    screen.print(f"{told}; {cube}: {verdict}", markup=False)
