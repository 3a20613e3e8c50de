"""``xcfg knobs|scorers|backends|contracts|importers list|show``: what is registered, and by which distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from xcfg.cli.commands.backend_check import backend_named, check
from xcfg.cli.output import document, emit, json_option, table
from xcfg.cli.session import Session
from xcfg.model.json import Json

if TYPE_CHECKING:
    from xcfg.plugin.registry import Registry

Row = dict[str, Json]


def _row(registry: Registry, kind: str, name: str, value: Any) -> Row:
    from xcfg.model.codec import unstructure

    fields = unstructure(value)
    return {**fields, "id": name, "distribution": registry.owner(kind, name)}


def _knobs(registry: Registry) -> Mapping[str, Any]:
    return registry.knobs()


def _scorers(registry: Registry) -> Mapping[str, Any]:
    return registry.scorers()


def _backends(registry: Registry) -> Mapping[str, Any]:
    return {f"{operator}/{name}": value for (operator, name), value in registry.backends().items()}


def _contracts(registry: Registry) -> Mapping[str, Any]:
    return registry.contracts()


def _importers(registry: Registry) -> Mapping[str, Any]:
    return registry.importers()


def _backend(registry: Registry, name: str) -> tuple[str, Any]:
    found = backend_named(registry, name)
    return f"{found.operator}/{found.id}", found


def _group(
    kind: str,
    plural: str,
    read: Callable[[Registry], Mapping[str, Any]],
    one: Callable[[Registry, str], tuple[str, Any]],
    columns: list[str],
) -> click.Group:
    """``read`` gives every entry by name, ``one`` an entry by its name, with its full name.

    ``one`` raises the registry's own error for a name that is not there.
    """

    @click.group(name=plural, help=f"List or show {plural}.")
    def group() -> None:
        pass

    @group.command(name="list", help=f"List registered {plural}.")
    @json_option
    @click.pass_obj
    def list_(session: Session, as_json: bool) -> None:
        registry = session.registry(allow_fake=True)
        rows = [_row(registry, kind, name, value) for name, value in sorted(read(registry).items())]
        headings = ["id", *columns, "distribution"]
        cells = [[_text(row.get(key)) for key in headings] for row in rows]
        emit(session, as_json, {**document(plural), plural: rows}, lambda out: table(out, headings, cells))

    @group.command(name="show", help=f"Show one entry of {plural}.")
    @click.argument("name")
    @json_option
    @click.pass_obj
    def show(session: Session, name: str, as_json: bool) -> None:
        registry = session.registry(allow_fake=True)
        row = _row(registry, kind, *one(registry, name))
        cells = [[key, _text(value)] for key, value in row.items()]
        emit(session, as_json, {**document(plural), kind: row}, lambda out: table(out, ["field", "value"], cells))

    return group


def _text(value: Json) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    return "" if value is None else str(value)


knobs = _group(
    "knob",
    "knobs",
    _knobs,
    lambda found, name: (name, found.knob(name)),
    ["source_class", "lifecycle", "targets", "summary"],
)
scorers = _group(
    "scorer", "scorers", _scorers, lambda found, name: (name, found.scorer(name)), ["roles", "launch", "summary"]
)
backends = _group("backend", "backends", _backends, _backend, ["determinism", "summary"])
backends.add_command(check)
contracts = _group(
    "contract", "contracts", _contracts, lambda found, name: (name, found.contract(name)), ["max_abs_dlogp"]
)
importers = _group(
    "importer", "importers", _importers, lambda found, name: (name, found.importer(name)), ["summary", "note"]
)
