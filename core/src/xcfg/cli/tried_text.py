"""The tables of ``xcfg doctor`` on what was tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xcfg.cli.output import table
from xcfg.model.json import Json

if TYPE_CHECKING:
    from rich.console import Console

_COUNTS = ("applied", "refused", "substituted")


def print_tried(out: Console, content: Mapping[str, Json]) -> None:
    """Versions and counts of every engine tried; with an experiment, its values that are known to make trouble."""
    rows = [
        [item["scorer"], item["role"], item["device"], _versions(item), *(str(item[name]) for name in _COUNTS)]
        for item in content["tried"]
    ]
    if rows:
        table(out, ["scorer", "as", "tried on", "engine", *_COUNTS], rows)
    if "experiment" not in content:
        return
    rows = [
        [item["scorer"], item["knob"], str(item["value"]), item["outcome"], _why(item), ", ".join(item["cases"])]
        for item in content["experiment"]
    ]
    if rows:
        table(out, ["scorer", "knob", "value", "outcome", "why", "cases"], rows)
    else:
        out.print("no value of this experiment is known to be refused or replaced by its engine")


def _versions(item: Mapping[str, Json]) -> str:
    said = []
    for name, version in item["engine"].items():
        now = item["installed"][name]
        other = "" if now == version else f" (installed: {now or 'none'})"
        said.append(f"{name} {version}{other}")
    return ", ".join(said)


def _why(item: Mapping[str, Json]) -> str:
    ran = f"ran {item['observed']}" if item["outcome"] == "substituted" else ""
    return ": ".join(filter(None, [ran, item["reason"]]))
