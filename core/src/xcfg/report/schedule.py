"""What a run would build, score and reuse, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xcfg.model.json import Json
from xcfg.report.layout import print_table

if TYPE_CHECKING:
    from rich.console import Console

UNKNOWN = "unknown"

_TOKENS = {
    "frozen": "the token batch is on disk",
    "recorded": "the token batch is the recorded one",
    "sampled": "the token batch is sampled first, by the production rollout",
}


def print_schedule(out: Console, schedule: Mapping[str, Json]) -> None:
    """Print the ``schedule`` of a ``plan`` document."""
    built = [item for item in schedule["engines"] if item["built"]]
    reused = len(schedule["engines"]) - len(built)
    rows = [
        [item["key"][:8], item["role"], item["scorer"], str(len(item["sides"])), str(item["reused"]),
         str(item["cases"]), _does(item), _seconds(item["estimate_s"])]
        for item in schedule["engines"]
    ]  # fmt: skip
    print_table(out, ["engine", "side", "scorer", "side runs", "on disk", "cases", "what is done", "time"], rows)
    for item in schedule["engines"]:
        for side in item["sides"]:
            if side["refused"]:
                out.print(f"{item['role']} {side['side_id']}: {side['refused']}", markup=False)
    out.print(f"engines: {len(built)} to build, {reused} reused from disk; {_TOKENS[schedule['tokens']]}")
    total = _seconds(schedule["estimate_s"])
    why = ": an engine of a kind that no earlier run in this folder measured" if total == UNKNOWN else ""
    out.print(f"estimated time with {schedule['jobs']} at once: {total}{why}")
    if schedule["note"]:
        out.print(schedule["note"], markup=False)


def _does(engine: Mapping[str, Json]) -> str:
    if not engine["built"]:
        return "nothing: all is on disk"
    left = len(engine["sides"]) - engine["reused"]
    return f"builds, {'samples, ' if engine['samples'] else ''}scores {left}"


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"about {value:.0f} s"
