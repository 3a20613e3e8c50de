"""Writes ``compatibility.json`` of the plugins, by running: ``python tests/matrix/run.py [SCORER-ROLE ...]``."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benches import BENCHES, COUNTS
from trying import ROOT, matrix, run

FILE = "compatibility.json"


def main(names: list[str]) -> None:
    """Tries the named benches, or all; what else a file holds is kept."""
    for name in names or list(BENCHES):
        bench = BENCHES[name]
        with tempfile.TemporaryDirectory() as folder:
            found = matrix(bench, COUNTS, run(bench, COUNTS, Path(folder)))
        path = ROOT / bench.package / FILE
        known = json.loads(path.read_text())["scorers"] if path.exists() else []
        others = [item for item in known if (item["scorer"], item["role"]) != (bench.scorer, bench.role)]
        scorers = sorted([*others, found], key=lambda item: (item["scorer"], item["role"]))
        path.write_text(json.dumps({"schema": "xcfg.compatibility/1", "scorers": scorers}, indent=1) + "\n")
        counts = {word: sum(row["outcome"] == word for row in found["tried"]) for word in OUTCOMES}
        print(name, ", ".join(f"{count} {word}" for word, count in counts.items()), flush=True)


OUTCOMES = ("applied", "refused", "substituted")

if __name__ == "__main__":
    main(sys.argv[1:])
