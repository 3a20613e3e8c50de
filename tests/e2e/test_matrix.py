"""Every knob and value of every scorer, run again: what comes of each is what its plugin says."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MATRIX = ROOT / "tests/matrix"
sys.path.insert(0, str(MATRIX))
BENCHES = runpy.run_path(str(MATRIX / "benches.py"))
TRYING = runpy.run_path(str(MATRIX / "trying.py"))


@pytest.mark.full
@pytest.mark.parametrize("name", BENCHES["BENCHES"])
def test_what_comes_of_every_value(name, tmp_path) -> None:
    bench = BENCHES["BENCHES"][name]
    values = list(TRYING["every_value"](bench, BENCHES["COUNTS"]))
    found = TRYING["matrix"](bench, values, TRYING["run"](bench, values, tmp_path))
    known = json.loads((ROOT / bench.package / "compatibility.json").read_text())["scorers"]
    (said,) = [item for item in known if (item["scorer"], item["role"]) == (bench.scorer, bench.role)]
    assert said["engine"] == found["engine"], "another version: run tests/matrix/run.py and read what changed"
    assert _outcomes(found) == _outcomes(said)


def _outcomes(matrix) -> list[str]:
    """Reasons may name process ids and folders; what was asked and observed may not change."""
    return [json.dumps([row["knob"], row["value"], row["outcome"], row.get("observed")]) for row in matrix["tried"]]
