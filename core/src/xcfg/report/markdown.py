"""Markdown for a pull-request comment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg.report.entries import Entry, entries
from xcfg.report.gate import gate_line
from xcfg.report.wording import FAKE_NOTE, limit_note, verdict_line

MOST = 65_000
"""Characters; GitHub refuses a comment above 65,536."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]()+!|<>~&])")
_LINKED = re.compile("([@#])")
"""What begins the name of a person or an issue, also behind a backslash, where a name follows at once."""
_MARKS = {"passed": "✅", "failed": "❌", "broken": "⚠️", "skipped": "⏭️"}


def markdown(content: Mapping[str, Json]) -> str:
    """A ``run``, ``report`` or ``gate`` document: the verdict, then a row a case, what failed first.

    Text from files is escaped. What does not fit a comment is left out, and its number told.
    """
    line = gate_line(content) if "checks" in content else verdict_line(content)
    head = [f"### xcfg {_text(content['name'])}: {_text(line)}", ""]
    if content.get("fake"):
        head += [f"**{FAKE_NOTE}**", ""]
    if limited := limit_note(content):
        head += [f"**{limited}**", ""]
    found = sorted(entries(content), key=lambda entry: ("failed", "broken", "passed", "skipped").index(entry.outcome))
    rows = [_row(entry) for entry in found]
    shown = _fitting(rows, MOST - sum(map(len, head)) - 500)
    table = ["| | case | status | |", "|---|---|---|---|", *rows[:shown]]
    left = [] if shown == len(rows) else ["", f"{len(rows) - shown} more cases are not shown."]
    return "\n".join([*head, *table, *left]) + "\n"


def _fitting(rows: list[str], room: int) -> int:
    used = 0
    for count, row in enumerate(rows):
        used += len(row) + 1
        if used > room:
            return count
    return len(rows)


def _row(entry: Entry) -> str:
    told = entry.message if not entry.detail or entry.outcome == "passed" else f"{entry.message}. {entry.detail}"
    return f"| {_MARKS[entry.outcome]} | {_text(entry.name)} | {_text(entry.kind)} | {_text(told)} |"


def _text(value: str) -> str:
    """The value as it is: nothing in it is markup, a mention or the end of a cell."""
    return _LINKED.sub("\\1\u200b", _SPECIAL.sub(r"\\\1", " ".join(value.split())))
