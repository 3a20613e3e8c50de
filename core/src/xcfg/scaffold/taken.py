"""Ids that a new distribution would register and somebody has already."""

from __future__ import annotations

from xcfg.errors import InvalidInput
from xcfg.model.kernel import SELECTED_LOGPROB
from xcfg.plugin.contribution import Key, backend_key, describe_key
from xcfg.plugin.known import bringing_distribution
from xcfg.plugin.registry import Registry
from xcfg.scaffold.names import Names


def refuse_taken(kind: str, names: Names, registry: Registry) -> None:
    """Raise InvalidInput where a distribution, installed or of this project, has the id that the new one is to have."""
    owner = _owner(kind, names.name, registry)
    key = _key(kind, names.name)
    if owner := owner or bringing_distribution(key):
        message = f"{describe_key(key)} belongs to {owner}, and one id has one owner"
        raise InvalidInput(message, where="NAME", hint="choose another name")


def _key(kind: str, name: str) -> Key:
    return {
        "plugin": ("scorer", name),
        "kernel": backend_key(SELECTED_LOGPROB, name),
        "importer": ("importer", name),
    }[kind]


def _owner(kind: str, name: str, registry: Registry) -> str:
    if kind == "kernel":
        known = (SELECTED_LOGPROB, name) in registry.backends()
        return registry.owner("backend", (SELECTED_LOGPROB, name)) if known else ""
    if kind == "plugin":
        return registry.owner("scorer", name) if name in registry.scorers() else ""
    return registry.owner("importer", name) if name in registry.importers() else ""
