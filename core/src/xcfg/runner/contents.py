"""The files of an output folder that its results are made of, in the order in which a copy must receive them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from xcfg.model.codec import load_json, structure
from xcfg.runner.attempt_files import FAILURE
from xcfg.runner.exits import NAME as EXIT
from xcfg.runner.seal import NAME as SEAL
from xcfg.runner.seal import Seal, payloads, sealed
from xcfg.runner.store import Store


@frozen(kw_only=True)
class Kept:
    """A file that is written once: path below the folder, where it lies, and its SHA-256 where a seal gives it."""

    key: str
    path: Path
    digest: str = ""


def written_once(out: Path) -> Iterator[tuple[Kept, ...]]:
    """Tokens, sealed attempts, recorded failures and launches' ends, one group each.

    The last file of a group says that the group is complete: seal, failure. Attempts that were cut off, what ranks of a
    failed attempt left, and specifications and logs of launches are not among them: no result is made of these.
    """
    store = Store(out)
    if sealed(store.tokens):
        yield _sealed(store, store.tokens)
    for side in sorted(path.name for path in (out / "sides").glob("*") if path.is_dir()):
        for _, path in store.attempts(side):
            if sealed(path):
                yield _sealed(store, path)
            elif (path / FAILURE).is_file():
                logs = sorted(item for item in (path / "logs").rglob("*") if item.is_file())
                yield tuple(Kept(key=store.relative(item), path=item) for item in (*logs, path / FAILURE))
    for path in sorted((out / "launches").glob(f"*/{EXIT}")):
        yield (Kept(key=store.relative(path), path=path),)


def documents(out: Path) -> tuple[Path, ...]:
    """Documents that grow with the folder, ``run.json`` and ``plan.json`` last."""
    store = Store(out)
    found = [*sorted((out / "cases").glob("*/comparison.json")), out / "search.json", store.run, store.plan]
    return tuple(path for path in found if path.is_file())


def _sealed(store: Store, folder: Path) -> tuple[Kept, ...]:
    seal = structure(load_json((folder / SEAL).read_bytes(), where=str(folder / SEAL)), Seal)
    files = (
        Kept(key=store.relative(path), path=path, digest=seal.files.get(path.relative_to(folder).as_posix(), ""))
        for path in payloads(folder)
    )
    return (*files, Kept(key=store.relative(folder / SEAL), path=folder / SEAL))
