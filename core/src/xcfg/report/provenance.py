"""What each side was asked for and what was seen, row by row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from xcfg.model.json import Json
from xcfg.model.provenance import KnobState
from xcfg.report.wording import setting

_DIGEST = re.compile("[0-9a-f]{64}")


def provenance_rows(case: Mapping[str, Json]) -> list[list[str]]:
    """Knob, side, requested, materialized, observed and state, with the reason where there is one."""
    return [
        [name, role, *_values(item), item["state"] + (f": {item['reason']}" if item["reason"] else "")]
        for name, knob in case["knobs"].items()
        for role, item in knob["sides"].items()
    ]


def _values(item: Mapping[str, Json]) -> list[str]:
    """Requested, materialized and observed; a dash where the knob has no meaning or nothing was seen."""
    if item["state"] == KnobState.INAPPLICABLE:
        return ["-", "-", "-"]
    seen = ["-" if item[name] is None else setting(item[name]) for name in ("materialized", "observed")]
    return [setting(item["requested"]), *seen]


def difference_rows(found: Sequence[Mapping[str, Json]]) -> list[list[str]]:
    """Name, both values and why it may matter; digests cut short."""
    return [[item["name"], _cut(item["rollout"]), _cut(item["training"]), item["why"]] for item in found]


def _cut(value: Json) -> str:
    if value is None:
        return "-"
    text = ", ".join(map(str, value)) if isinstance(value, list) else setting(value)
    return text[:12] if _DIGEST.fullmatch(text) else text
