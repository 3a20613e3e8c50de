"""Seconds and bytes of the HTML report of 200 cases with 512 active tokens each, made by fake scorers.

``python tests/bench/html_report.py`` prints one line: the fastest of five, started as a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = Path(__file__).parents[2] / "docs/examples/fake-model"
TURNS = 5
EXPERIMENT = {
    "schema": "xcfg.experiment/1",
    "name": "two-hundred",
    "mode": "product",
    "checkpoint": {"path": str(MODEL)},
    "rollout": {"scorer": "fake"},
    "training": {"scorer": "fake"},
    "tokens": {"recorded": "tokens.jsonl"},
    "baseline": {"rollout.scoring_path": "prefill"},
    "axes": {
        "rollout.dtype": ["bfloat16", "float32", "float16"],
        "training.compute_dtype": ["bfloat16", "float32", "float16"],
        "training.output_dtype": [None, "float32"],
        "batch.micro_size": [None, *range(1, 11)],
    },
}


def main() -> None:
    """Makes the run, then the page five times."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows = [{"id": f"s{row}", "prompt_ids": [1, 2], "response_ids": [3 + row] * 64} for row in range(8)]
        (folder / "tokens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "experiment.json").write_text(json.dumps(EXPERIMENT))
        command = [sys.executable, "-m", "xcfg.cli", "-q"]
        run = [*command, "run", str(folder / "experiment.json"), "--allow-fake", "--out", str(folder / "run"), "--json"]
        counts = json.loads(subprocess.run(run, check=False, capture_output=True, text=True).stdout)["counts"]
        page = folder / "report.html"
        spent = []
        for _ in range(TURNS):
            started = time.perf_counter()
            words = ["report", str(folder / "run"), "--html", str(page), "--json"]
            subprocess.run([*command, *words], check=False, stdout=subprocess.DEVNULL)
            spent.append(time.perf_counter() - started)
        cases = sum(counts.values())
        print(f"html: {cases} cases, {cases * 512} tokens: {min(spent):.2f} s, {page.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
