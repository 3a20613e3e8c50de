"""What each side was asked for and what was seen, row by row."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg.model.provenance import KnobState
from xcfg.report.wording import setting


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
