"""Files of recorded logprobs opened through the plugins: readers by suffix, importers by layout."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from attrs import evolve, frozen

from xcfg.errors import ArtifactError, EnvironmentFault, Fault, InvalidInput, PluginError
from xcfg.importers.generic import FIELDS
from xcfg.importers.mapping import renamed
from xcfg.importers.source import Source
from xcfg.model.codec import unknown
from xcfg.model.importer import FileFormatDescriptor, ImporterDescriptor
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role
from xcfg.plugin.protocols import FileReader, Importer
from xcfg.plugin.registry import Registry
from xcfg.plugin.target import load_target
from xcfg.plugin.theirs import theirs

AUTO = "auto"
GENERIC = "generic"


@frozen(kw_only=True)
class RecordedSide:
    """One side's files with the importer that reads them. ``columns`` renames {field: column} first."""

    role: Role
    source: Source
    format: ImporterDescriptor
    importer: Importer
    columns: Mapping[str, str]
    owner: str

    def records(self) -> Iterator[Record]:
        """The records, read as they are asked for."""
        rows = self.source.rows()
        with _named(self.role), theirs(f"the importer {self.format.id}", self.owner):
            yield from self.importer.records(renamed(rows, self.columns) if self.columns else rows, self.role)


def open_side(path: Path, role: Role, format: str, columns: Mapping[str, str], registry: Registry) -> RecordedSide:
    """Find the files and the importer of a side.

    Raises InvalidInput for a path or format that is not there or cannot be told, ArtifactError for a broken file.
    """
    source = Source(paths=[path], readers=_readers(registry))
    if columns and format not in (AUTO, GENERIC):
        raise InvalidInput(f"--map names fields of the generic format, not of {format}", where="--map")
    if columns:
        chosen = registry.importer(GENERIC)
    elif format != AUTO:
        chosen = registry.importer(format)
    else:
        with _named(role):
            chosen = _detected(source, path, registry)
    return RecordedSide(
        role=role,
        source=source,
        format=chosen,
        importer=_importer(chosen, registry),
        columns=columns,
        owner=registry.owner("importer", chosen.id),
    )


def refuse_one_file(rollout: RecordedSide, training: RecordedSide) -> None:
    """Raise ArtifactError where both sides are the same column of the same files: nothing could ever differ."""
    files = [sorted((found.st_dev, found.st_ino) for found in _stats(side)) for side in (rollout, training)]
    columns = [_measured(side) for side in (rollout, training)]
    same = files[0] == files[1] and rollout.format == training.format and columns[0] == columns[1]
    if same and not rollout.format.both_sides:
        raise ArtifactError(
            "both sides are the same column of the same file, which is one measurement and not two",
            where=str(rollout.source.files[0]),
            hint="give the other side's file, or its column with --map training.logprobs=COLUMN",
        )


def _stats(side: RecordedSide) -> list[os.stat_result]:
    return [file.stat() for file in side.source.files]


def _measured(side: RecordedSide) -> object:
    """What tells one measurement in a file from another: the column of the logprobs, where the layout is known."""
    if side.format.id == GENERIC:
        return side.columns.get("logprobs", "logprobs")
    return {field: column for field, column in side.columns.items() if field != column}


@contextmanager
def _named(role: Role) -> Iterator[None]:
    """Say of which side a broken file is: those of both may have one name."""
    try:
        yield
    except ArtifactError as error:
        faults = [evolve(item, where=f"{role.value}: {item.where}") for item in error.faults]
        raise ArtifactError(faults=faults) from error


def columns_of(options: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """``--map field=column``, ``rollout.field=column`` and ``training.field=column`` as a mapping a side."""
    sides: dict[str, dict[str, str]] = {"rollout": {}, "training": {}}
    for option in options:
        name, equals, column = option.partition("=")
        prefix, dot, field = name.rpartition(".")
        if dot and prefix not in sides:
            raise InvalidInput(unknown("side", prefix, list(sides)), where="--map")
        chosen = [prefix] if dot else list(sides)
        if not (equals and field and column):
            raise InvalidInput(
                f"{option!r} is not FIELD=COLUMN", where="--map", hint="as in --map logprobs=old_log_probs"
            )
        if field not in FIELDS:
            raise InvalidInput(unknown("field", field, list(FIELDS)), where="--map")
        for side in chosen:
            if field in sides[side]:
                raise InvalidInput(f"{field!r} is mapped twice", where="--map")
            sides[side][field] = column
    return sides["rollout"], sides["training"]


def _readers(registry: Registry) -> dict[str, FileReader]:
    readers: dict[str, FileReader] = {}
    owners: dict[str, str] = {}
    for id, found in registry.file_formats().items():
        for suffix in found.suffixes:
            if suffix in readers:
                raise PluginError(f"file formats {owners[suffix]!r} and {id!r} both open {suffix} files")
            readers[suffix], owners[suffix] = _reader(found, registry.owner("file_format", id)), id
    return readers


def _reader(found: FileFormatDescriptor, owner: str) -> FileReader:
    """A reader that is imported when the first file is opened."""

    def read(path: Path) -> Iterator[Row]:
        missing = [name for name in found.requires if find_spec(name) is None]
        if missing:
            raise EnvironmentFault(f"{', '.join(missing)} is not installed", where=str(path), hint=found.install)
        return _rows(load_target(found.target, owner), path, found.id, owner)

    return read


def _rows(reader: FileReader, path: Path, id: str, owner: str) -> Iterator[Row]:
    with theirs(f"the reader of {id} files", owner):
        yield from reader(path)


def _importer(found: ImporterDescriptor, registry: Registry) -> Importer:
    owner = registry.owner("importer", found.id)
    made = load_target(found.target, owner)
    with theirs(f"the importer {found.id}", owner):
        importer: Importer = made()
    return importer


def _claims(found: ImporterDescriptor, registry: Registry, fields: frozenset[str]) -> bool:
    importer = _importer(found, registry)
    with theirs(f"the importer {found.id}", registry.owner("importer", found.id)):
        return importer.claims(fields)


def _detected(source: Source, path: Path, registry: Registry) -> ImporterDescriptor:
    fields = source.first_fields()
    every = registry.importers()
    claiming: list[str] = []
    broken: list[Fault] = []
    for id, found in every.items():
        try:
            claiming += [id] if _claims(found, registry, fields) else []
        except PluginError as error:  # it cannot say what is its own; the others can
            broken += error.faults
    if len(claiming) == 1:
        return every[claiming[0]]
    shown = ", ".join(sorted(fields)[:20])
    if broken and not claiming:
        raise PluginError(
            faults=[Fault(message=f"the fields {shown} are of no known format", where=str(path)), *broken]
        )
    if claiming:
        message = f"the fields {shown} fit the formats {', '.join(claiming)}"
        raise InvalidInput(message, where=str(path), hint="choose one with --format")
    raise InvalidInput(
        f"the fields {shown} are of no known format",
        where=str(path),
        hint=f"choose one of {', '.join(every)} with --format, or name the columns with --map FIELD=COLUMN",
    )
