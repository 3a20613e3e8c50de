"""Writes ``compatibility.json`` of a plugin, by running: ``python tests/matrix/run.py SCORER-ROLE [KNOB ...]``.

With knobs, only these are tried again, and the other rows are kept. Side runs that are sealed in ``runs/matrix`` are
used again.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from benches import BENCHES, COUNTS
from trying import ROOT, every_value, matrix, run

FILE = "compatibility.json"
OUTCOMES = ("applied", "refused", "substituted")


def main(name: str, knobs: list[str]) -> None:
    """Tries one bench and writes what came of it among what its plugin's file holds."""
    bench = BENCHES[name]
    values = list(every_value(bench, COUNTS, knobs))
    found = matrix(bench, values, run(bench, values, ROOT / "runs/matrix" / name))
    path = ROOT / bench.package / FILE
    known = json.loads(path.read_text())["scorers"] if path.exists() else []
    own = [item for item in known if (item["scorer"], item["role"]) == (bench.scorer, bench.role)]
    if knobs:
        kept = [row for item in own for row in item["tried"] if row["knob"] not in knobs]
        found["tried"] = sorted([*kept, *found["tried"]], key=lambda row: row["knob"])
    scorers = [found, *(item for item in known if item not in own)]
    scorers.sort(key=lambda item: (item["scorer"], item["role"]))
    path.write_text(json.dumps({"schema": "xcfg.compatibility/1", "scorers": scorers}, indent=1) + "\n")
    print(name, ", ".join(f"{_count(found, word)} {word}" for word in OUTCOMES), flush=True)


def _count(found: dict[str, Any], outcome: str) -> int:
    return sum(row["outcome"] == outcome for row in found["tried"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
