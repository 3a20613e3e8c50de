"""The recorded files of the documentation: both sides of a real run, compared without an engine."""

from __future__ import annotations

import json
from pathlib import Path

from xcfg.exitcodes import ExitCode

RECORDED = Path(__file__).parents[2] / "docs/examples/recorded"


def largest() -> float:
    """max abs(d) straight from the two files."""
    sides = [
        {
            item["id"]: item["logprobs"]
            for item in map(json.loads, (RECORDED / f"{name}.jsonl").read_text().splitlines())
        }
        for name in ("rollout", "training")
    ]
    return max(abs(t - r) for name, row in sides[0].items() for r, t in zip(row, sides[1][name], strict=True))


def test_the_files_of_the_readme_drift_as_they_say(xcfg):
    done = xcfg("compare", RECORDED / "rollout.jsonl", RECORDED / "training.jsonl", "--json")
    assert done.code == ExitCode.DRIFT
    found = done.document
    assert found["metrics"]["max_abs_dlogp"] == largest()
    assert found["assumed"] == []
    assert {(item["rollout_rank"], item["train_rank"]) for item in found["per_rank"]} == {(0, 0), (0, 1)}
