"""What came of each knob and value where a plugin was tried: applied, refused, or replaced by something else.

A plugin's package may hold ``compatibility.json`` beside its plugin module; the file is made by running every value
(``tests/matrix``). It is found and read without importing the plugin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from attrs import field, frozen

from xcfg.errors import PluginError
from xcfg.model.codec import load_json, structure
from xcfg.model.ids import canonical
from xcfg.model.json import Json, freeze, tupled
from xcfg.model.scorer import Role
from xcfg.plugin.inventory import PluginInfo

SCHEMA = "xcfg.compatibility/1"
FILE = "compatibility.json"


class Outcome(StrEnum):
    """``substituted``: the engine ran something else than was asked of it, and read-back said so."""

    APPLIED = "applied"
    REFUSED = "refused"
    SUBSTITUTED = "substituted"


@frozen(kw_only=True)
class Tried:
    """One value of one knob. ``beside`` are the values of other knobs that it was tried together with.

    ``observed`` is what read-back gave, None where nothing ran; ``reason`` says why a value was refused or what ran.
    """

    knob: str
    value: Json = field(converter=freeze)
    outcome: Outcome
    observed: Json = field(default=None, converter=freeze)
    reason: str = ""
    beside: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class Compatibility:
    """What came of the values of one scorer in one role; ``engine`` are the versions by distribution."""

    scorer: str
    role: Role
    engine: Mapping[str, str] = field(converter=freeze)
    device: str
    tried: tuple[Tried, ...] = field(converter=tupled)

    def count(self, outcome: Outcome) -> int:
        """How many values came out so."""
        return sum(item.outcome is outcome for item in self.tried)

    def of(self, knob: str, value: Json) -> Tried | None:
        """What came of a value; None where it was not tried."""
        wanted = canonical(value)
        return next((item for item in self.tried if item.knob == knob and canonical(item.value) == wanted), None)


@frozen(kw_only=True)
class _Document:
    schema: str
    scorers: tuple[Compatibility, ...] = field(converter=tupled)


def compatibility_of(plugin: PluginInfo) -> tuple[Compatibility, ...]:
    """What the plugin's package holds; nothing where it has no such file. Raises PluginError for one it cannot read."""
    found = find_spec(re.split(r"[.:]", plugin.target)[0].strip())
    folders = (found.submodule_search_locations or ()) if found else ()
    path = next((Path(folder) / FILE for folder in folders if (Path(folder) / FILE).is_file()), None)
    return () if path is None else read_compatibility(path)


def read_compatibility(path: Path) -> tuple[Compatibility, ...]:
    """The content of a file. Raises PluginError."""
    try:
        content = structure(load_json(path.read_bytes(), where=str(path)), _Document)
    except Exception as error:
        raise PluginError(f"what was tried of the engine is unreadable: {error}", where=str(path)) from error
    if content.schema != SCHEMA:
        raise PluginError(f"schema {content.schema!r}, expected {SCHEMA!r}", where=str(path))
    return content.scorers
