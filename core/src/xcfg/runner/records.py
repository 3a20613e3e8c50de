"""JSONL files of records, read strictly: every faulty line is named, all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from xcfg.errors import Fault, InvalidInput
from xcfg.model.codec import load_json, structure
from xcfg.model.json import Json

T = TypeVar("T")


def read_records(path: Path, cls: type[T], check: Callable[[T], str], name: Callable[[T], str]) -> list[T]:
    """The records of a file as values of ``cls``.

    ``check`` gives a sentence about what is wrong with a record, or nothing; ``name`` the id that must not repeat.
    Raises InvalidInput with one fault a wrong line, or for a file that is missing, unreadable or empty.
    """
    found: list[T] = []
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    for number, line in _lines(path):
        where = f"{path}:{number}"
        try:
            record = structure(load_json(line, where=where), cls)
        except InvalidInput as error:
            faults.extend(Fault(message=_placed(item, where), where=where) for item in error.faults)
            continue
        if problem := check(record):
            faults.append(Fault(message=problem, where=where))
        if (first := seen.setdefault(name(record), number)) != number:
            faults.append(Fault(message=f"id {name(record)!r} is already on line {first}", where=where))
        found.append(record)
    if not found and not faults:
        faults.append(Fault(message="the file holds no record", where=str(path)))
    if faults:
        raise InvalidInput(faults=faults)
    return found


def _placed(fault: Fault, where: str) -> str:
    return fault.message if fault.where in ("", where) else f"{fault.where}: {fault.message}"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InvalidInput("no such file", where=str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"unreadable: {error}", where=str(path)) from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def ids_problem(what: str, values: tuple[Json, ...]) -> str:
    """A sentence where token ids are not non-negative integers."""
    wrong = [index for index, value in enumerate(values) if value < 0]
    return f"{what}[{wrong[0]}] is negative" if wrong else ""
