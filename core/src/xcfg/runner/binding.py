"""An output folder belongs to one semantic identity; another one is refused and nothing is touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from xcfg.errors import ArtifactError, InvalidInput, XcfgError
from xcfg.model.attempt import SideFailure
from xcfg.model.codec import load_json, structure, unstructure
from xcfg.model.json import Json, freeze
from xcfg.model.tolerance import ContractRef
from xcfg.runner.durable import encode, replace_changed, write_json
from xcfg.runner.store import Store

SCHEMA = "xcfg.folder/1"
LOCK_FILES = frozenset({".lock", ".lock-holder.json"})


@frozen(kw_only=True)
class Binding:
    """What every number in a folder has in common.

    ``tokens`` is the declared token source with the digests of its files; ``sampler`` the digest of the production
    rollout configuration where it samples the batch, empty for a recorded one.
    """

    checkpoint: str
    tokenizer: str
    tokens: Json = field(converter=freeze)
    sampler: str
    contract: ContractRef


@frozen(kw_only=True)
class LastRun:
    """How the newest execution ended. ``engines`` as in the run report; times in seconds."""

    engines: Mapping[str, int] = field(converter=freeze)
    wall_s: float
    engine_s: float
    sampling: SideFailure | None = None


@frozen(kw_only=True)
class Folder:
    """Content of ``run.json``. ``checkpoints`` maps each checkpoint path of the plan to its digests."""

    schema: str = SCHEMA
    binding: Binding
    checkpoints: Mapping[str, Mapping[str, str]] = field(factory=dict, converter=freeze)
    last: LastRun | None = None


def read_folder(store: Store) -> Folder:
    """The content of ``run.json``. Raises ArtifactError."""
    try:
        found = structure(load_json(store.run.read_bytes(), where=str(store.run)), Folder)
    except (OSError, XcfgError) as error:
        raise ArtifactError(f"run.json is unreadable: {error}", where=str(store.run)) from error
    if found.schema != SCHEMA:
        raise ArtifactError(f"schema {found.schema!r}, expected {SCHEMA!r}", where=str(store.run))
    return found


def check(store: Store, binding: Binding) -> None:
    """Raise InvalidInput where the folder holds something else, reading only."""
    root = store.root
    if not root.exists():
        return
    if not root.is_dir():
        raise InvalidInput("the output folder is a file", where=str(root), hint="choose another --out")
    if not store.run.exists():
        _refuse_foreign(root)
        return
    if other := difference(unstructure(read_folder(store).binding), unstructure(binding)):
        raise InvalidInput(
            f"this folder belongs to another experiment: its {other}",
            where=str(root),
            hint="choose another --out; nothing was changed",
        )


def difference(held: Json, now: Json) -> str:
    """The first thing in which two bindings, as JSON, differ: ``contract.id is A, not B``; empty where in none."""
    found, wanted = _flat(held), _flat(now)
    for name in [*wanted, *(name for name in found if name not in wanted)]:
        if found.get(name) != wanted.get(name):
            return f"{name} is {_short(found.get(name))}, not {_short(wanted.get(name))}"
    return ""


def bind(store: Store, binding: Binding, checkpoints: Mapping[str, Mapping[str, str]]) -> None:
    """Write or complete ``run.json``; the caller holds the lock and :func:`check` has passed."""
    if not store.run.exists():
        write_json(store.run, Folder(binding=binding, checkpoints=checkpoints))
        return
    found = read_folder(store)
    replace_changed(store.run, encode(evolve(found, checkpoints={**found.checkpoints, **checkpoints})))


def finish(store: Store, last: LastRun) -> None:
    """Record how the execution ended."""
    write_json(store.run, evolve(read_folder(store), last=last))


def _refuse_foreign(root: Path) -> None:
    foreign = sorted(item.name for item in root.iterdir() if item.name not in LOCK_FILES)
    if foreign:
        raise InvalidInput(
            f"the folder is not empty and holds no run of ours: {', '.join(foreign[:3])}",
            where=str(root),
            hint="choose another --out; nothing was changed",
        )


def _flat(value: Json, name: str = "") -> dict[str, Json]:
    """Plain values by dotted name: ``tokens.sample.seed``."""
    if not isinstance(value, Mapping):
        return {name: value}
    parts = (_flat(item, f"{name}.{key}" if name else key) for key, item in value.items())
    return {place: item for part in parts for place, item in part.items()}


def _short(value: Json) -> str:
    text = "nothing" if value in (None, "") else str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
