"""Measure what the documentation quotes: start-up, comparing, planning, searching, running. Prints, never asserts."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import engines as costs
import kernels
import overhead
import planning
import psutil
import recorded
import search

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/qwen3-tiny-tp2-fsdp.yaml"
PAIRS = 15


def seconds(*command: str) -> float:
    """Wall time of one process."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def start_up() -> None:
    """``xcfg --help`` against ``python -c pass``, in alternating pairs of one run."""
    script = str(Path(sys.executable).with_name("xcfg"))
    pairs = [(seconds(sys.executable, "-c", "pass"), seconds(script, "--help")) for _ in range(PAIRS)]
    bare, helped = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(second / first for first, second in pairs)
    print(f"start-up: python -c pass {bare * 1e3:.0f} ms, xcfg --help {helped * 1e3:.0f} ms, median ratio {ratio:.2f}")


def run_once(out: Path) -> dict:
    """Run the example, watching the parent's resident memory; returns its document."""
    options = ["--jobs", "1", "--out", str(out), "--json"]
    command = [sys.executable, "-m", "xcfg.cli", "-q", "run", str(EXAMPLE), *options]
    peak, began = 0, time.monotonic()
    with tempfile.TemporaryFile("w+") as output, subprocess.Popen(command, stdout=output) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            peak = max(peak, watched.memory_info().rss)
            time.sleep(0.05)
        whole = time.monotonic() - began
        output.seek(0)
        document = json.load(output)
    return {**document, "parent_peak_mb": peak / 1e6, "whole_s": whole}


def main() -> None:
    """Print every figure. A folder given as argument keeps both runs' documents and the output folder."""
    start_up()
    recorded.in_memory()
    recorded.streamed()
    planning.main()
    search.main()
    kernels.main()
    overhead.main()
    costs.main([])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch)
        for label in ("first run", "second run"):
            done = run_once(folder / "run")
            (folder / f"{label.replace(' ', '-')}.json").write_text(json.dumps(done))
            engines = done["engines"]
            print(
                f"{label}: {len(done['cases'])} cases, engines distinct {engines['distinct']}, constructed "
                f"{engines['constructed']}, reused {engines['reused_from_disk']}; wall {done['wall_s']:.0f} s, engines "
                f"{done['engine_s']:.0f} s; {overhead.share(done['engine_s'], done['whole_s'])}; parent peak "
                f"{done['parent_peak_mb']:.0f} MB"
            )


if __name__ == "__main__":
    main()
