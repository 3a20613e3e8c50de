"""Every seal, record and document of an output folder, read and hashed again: what no longer holds, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import define, field, frozen

from xcfg.errors import ArtifactError, InvalidInput, XcfgError
from xcfg.model.codec import load_json, structure
from xcfg.plugin.checkpoint import file_digest
from xcfg.runner.artifacts import load_plan
from xcfg.runner.attempt_files import read_attempt, read_failure, subject_of
from xcfg.runner.binding import read_folder
from xcfg.runner.exits import exit_findings
from xcfg.runner.frozen import SUBJECT, load_frozen
from xcfg.runner.seal import NAME, SCHEMA, Seal, payloads, sealed
from xcfg.runner.store import Store


@frozen(kw_only=True)
class Problem:
    """One damaged thing: its path below the folder and what is wrong with it."""

    path: str
    message: str


@define(kw_only=True)
class Audit:
    """What was found. ``attempts`` counts the sealed ones, ``payloads`` their files; ``bound`` is False where
    run.json, the plan or the tokens do not hold, so that nothing can be judged.
    """

    attempts: int = 0
    payloads: int = 0
    failures: int = 0
    unfinished: int = 0
    bound: bool = True
    problems: list[Problem] = field(factory=list)


def audit(out: Path) -> Audit:
    """Check the folder's documents, the tokens, and every attempt and launch in it; nothing is written."""
    store, found = Store(out), Audit()
    tokens = ""
    for check in (read_folder, lambda item: load_plan(item.root)):
        try:
            check(store)
        except XcfgError as error:
            found.bound = False
            found.problems.extend(_problems(out, error, store.run if check is read_folder else store.plan))
    try:
        batch = load_frozen(store.tokens)
        tokens = "" if batch is None else batch.digest()
    except ArtifactError as error:
        found.bound = False
        found.problems.extend(broken_seal(store.tokens, SUBJECT, out) or _problems(out, error, store.tokens))
    for side in sorted(path for path in (out / "sides").glob("*") if path.is_dir()):
        for number, path in store.attempts(side.name):
            _attempt(found, out, path, side.name, number, tokens)
    for launch in sorted((out / "launches").glob("*")):
        try:
            exit_findings(launch)
        except ArtifactError as error:
            found.problems.extend(_problems(out, error, launch))
    for path in (*sorted((out / "cases").glob("*/comparison.json")), store.checkpoints, out / "search.json"):
        found.problems.extend(_unreadable(path, out))
    return found


def broken_seal(folder: Path, subject: str, out: Path) -> list[Problem]:
    """Everything about a sealed folder that is not as it was sealed; paths are given below ``out``."""
    return list(_broken(folder, subject, out))


def _broken(folder: Path, subject: str, out: Path) -> Iterator[Problem]:
    path = folder / NAME
    if not path.is_file():
        yield Problem(path=_below(out, path), message="the seal is missing")
        return
    try:
        seal = structure(load_json(path.read_bytes(), where=NAME), Seal)
    except (OSError, XcfgError) as error:
        yield Problem(path=_below(out, path), message=f"the seal is unreadable: {error}")
        return
    if seal.schema != SCHEMA:
        yield Problem(path=_below(out, path), message=f"schema {seal.schema!r}, expected {SCHEMA!r}")
    if seal.subject != subject:
        yield Problem(path=_below(out, path), message=f"the seal is of {seal.subject!r}, expected {subject!r}")
    present = {item.relative_to(folder).as_posix(): item for item in payloads(folder)}
    for name in sorted(present.keys() | seal.files.keys()):
        where = _below(out, folder / name)
        if name not in present:
            yield Problem(path=where, message="a sealed file is missing")
        elif name not in seal.files:
            yield Problem(path=where, message="this file was added after sealing")
        else:
            try:
                if file_digest(present[name]) != seal.files[name]:
                    yield Problem(path=where, message="the content is not what was sealed")
            except OSError as error:
                yield Problem(path=where, message=f"unreadable: {error.strerror}")


def _attempt(found: Audit, out: Path, path: Path, side: str, number: int, tokens: str) -> None:
    try:
        if not sealed(path):
            failed = read_failure(path)
            found.failures += failed is not None
            found.unfinished += failed is None
            return
        found.attempts += 1
        found.payloads += len(payloads(path))
        attempt = read_attempt(path, side, number)
        if tokens and attempt.result.identity.token_digest != tokens:
            found.problems.append(Problem(path=_below(out, path), message="it was made with another token batch"))
    except (ArtifactError, OSError) as error:
        broken = broken_seal(path, subject_of(side, number), out) if sealed(path) else []
        found.problems.extend(broken or _problems(out, error, path))


def _unreadable(path: Path, out: Path) -> Iterator[Problem]:
    try:
        if path.exists():
            load_json(path.read_bytes(), where=path.name)
    except (OSError, InvalidInput) as error:
        yield Problem(path=_below(out, path), message=f"unreadable: {error}")


def _problems(out: Path, error: Exception, path: Path) -> list[Problem]:
    """The faults of an error, each at its own file where it names one below ``out``."""
    if not isinstance(error, XcfgError):
        return [Problem(path=_below(out, path), message=str(error))]
    found = []
    for fault in error.faults:
        place, _, inside = fault.where.partition(" ")
        named = Path(place) if place and Path(place).is_relative_to(out) else path
        found.append(
            Problem(path=_below(out, named), message=f"{inside}: {fault.message}" if inside else fault.message)
        )
    return found


def _below(out: Path, path: Path) -> str:
    return path.relative_to(out).as_posix() if path.is_relative_to(out) else str(path)
