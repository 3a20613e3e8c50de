"""The gate file as values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from xcfg.errors import InvalidInput
from xcfg.model.codec import load_json, structure
from xcfg.model.json import Json, freeze, tupled

SCHEMA = "xcfg.gate-file/1"
ANSWER, REFERENCE, PRODUCTION, PART, UNRELATED = "answer", "reference", "production", "part", "unrelated"
FAMILY = SCHEMA.partition("/")[0] + "/"


@frozen(kw_only=True)
class PinnedCase:
    """A case that the gate rests on. ``sets`` is knob to assignment; ``within`` None where it was not executed."""

    role: str
    id: str
    sets: Mapping[str, Mapping[str, Json]] = field(converter=freeze)
    within: bool | None


@frozen(kw_only=True)
class Gate:
    """What a search pinned: ``aligned`` is knob to assignment, ``still_different`` knob to production values."""

    experiment: str
    identity: Mapping[str, Json] = field(converter=freeze)
    level: str
    aligned: Mapping[str, Mapping[str, Json]] = field(converter=freeze)
    values: Mapping[str, Json] = field(converter=freeze)
    still_different: Mapping[str, Json] = field(converter=freeze)
    cases: tuple[PinnedCase, ...] = field(converter=tupled)

    def without_unrelated(self) -> Gate:
        """The same but for the cases that tell which knobs change nothing."""
        return evolve(self, cases=[case for case in self.cases if case.role != UNRELATED])


def read_gate(path: Path) -> Gate:
    """The gate in a file. Raises InvalidInput where there is none, or one of another version."""
    try:
        found = load_json(path.read_bytes(), where=str(path))
    except OSError as error:
        hint = "`xcfg search EXPERIMENT --gate FILE` writes one"
        raise InvalidInput(f"no gate file: {error.strerror}", where=str(path), hint=hint) from error
    schema = found.get("schema") if isinstance(found, Mapping) else None
    if schema != SCHEMA:
        again = "write it again with this version: xcfg search EXPERIMENT --gate FILE"
        hint = again if str(schema).startswith(FAMILY) else "name a file that `xcfg search --gate` wrote"
        raise InvalidInput(f"schema {schema!r}, expected {SCHEMA!r}", where=str(path), hint=hint)
    try:
        return structure({**{name: found[name] for name in _PLAIN}, "cases": _cases(found["cases"])}, Gate)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"not a whole gate: {error!r}", where=str(path), hint="write it again") from error


def is_gate(path: Path) -> bool:
    """Whether a file holds a gate of any version."""
    if not path.is_file():
        return False
    try:
        found = load_json(path.read_bytes(), where=str(path))
    except InvalidInput:
        return False
    return isinstance(found, Mapping) and str(found.get("schema", "")).startswith(FAMILY)


_PLAIN = ("experiment", "identity", "level", "aligned", "values", "still_different")


def _cases(found: Mapping[str, Json]) -> list[Json]:
    one = [(role, found[role]) for role in (ANSWER, REFERENCE, PRODUCTION)]
    # an empty alignment is production itself, and everything aligned may be the answer: each case has its first role
    more = [(PART, item) for item in found["parts"]] + [(UNRELATED, item) for item in found["unrelated"]]
    found_first = {item["id"]: (role, item) for role, item in reversed((*one, *more))}
    return [
        {"role": role, "id": item["id"], "sets": item["sets"], "within": item["within_baseline_row"]}
        for role, item in reversed(found_first.values())
    ]
