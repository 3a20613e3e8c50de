"""What the harness adds to its engines, and how soon a finished run knows that it is. Fake scorers. Prints."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from xcfg.model.json import Json

GRID = Path(__file__).parents[2] / "docs/examples/fake-grid-256.yaml"
ROUNDS = 3
SIDE = 100
"""Configurations of each side in the large grid: 10,000 cases of 200 side runs."""


@frozen(kw_only=True)
class Run:
    """One ``xcfg run``. Seconds: the whole process, and from its start until it had no engine left to wait for."""

    document: dict[str, Any]
    whole: float
    engines_over: float

    @property
    def beside(self) -> float:
        """Seconds in which no engine process lived."""
        return self.whole - float(self.document["engine_s"])


def run(out: Path, *arguments: str) -> Run:
    """The fake grid, one engine at a time.

    ``run.json`` is written when the last engine is gone, or at once where none is needed: its time is the mark.
    """
    options = ["--allow-fake", "--jobs", "1", "--out", str(out), "--json"]
    command = [sys.executable, "-m", "xcfg.cli", "-q", "run", str(GRID), *options, *arguments]
    began = time.time()
    done = subprocess.run(command, check=True, capture_output=True)
    whole = time.time() - began
    return Run(
        document=json.loads(done.stdout),
        whole=whole,
        engines_over=(out / "run.json").stat().st_mtime - began,
    )


def scoring(out: Path) -> float:
    """Seconds that the ranks themselves measured: engine built, tokens sampled, sides scored. No start of a process."""
    timings = [json.loads(path.read_bytes())["phases"] for path in out.glob("sides/*/attempt-*/timing.json")]
    return sum(phases.get(name, 0.0) for phases in timings for name in ("open", "sample", "score"))


def a_case(scratch: Path) -> None:
    """256 cases from instant scorers, and the same folder again."""
    beside, strict, again = [], [], []
    for number in range(ROUNDS):
        out = scratch / f"grid-{number}"
        first, second = run(out), run(out)
        cases = len(first.document["cases"])
        beside.append(first.beside / cases)
        strict.append((first.whole - scoring(out)) / cases)
        again.append(second.whole / cases)
    engines = first.document["engines"]
    print(
        f"overhead: {cases} cases, {engines['constructed']} engines: {_ms(beside)} ms a case beside the engines' "
        f"processes, {_ms(strict)} ms with their start and imports counted as overhead; resumed {_ms(again)} ms a case"
    )


def engines_alone(scratch: Path) -> None:
    """4 by 4 configurations: each engine is built once, whatever the number of cases that use it."""
    document = run(scratch / "engines", "--slice", "engines").document
    engines = document["engines"]
    print(
        f"product grid of 4 by 4 side configurations: {len(document['cases'])} cases, {engines['distinct']} distinct "
        f"engines, {engines['constructed']} constructed"
    )


def large() -> Sequence[str]:
    """Arguments that make the grid 100 by 100 request-time configurations."""
    temperatures: Json = [round(0.5 + 0.01 * step, 2) for step in range(SIDE)]
    return (
        f"axes={{sampling.temperature: {temperatures}, batch.micro_size: {list(range(1, SIDE + 1))}}}",
        f"baseline.sampling.temperature={temperatures[0]}",
        "baseline.batch.micro_size=1",
        "slices={}",
        "--max-cases",
        str(SIDE**2),
    )


def resumed(scratch: Path) -> None:
    """10,000 finished cases: until it is known that nothing is to be done, and to the end of the command."""
    out = scratch / "large"
    first = run(out, *large())
    bare, rounds = [], []
    for _ in range(ROUNDS):
        bare.append(help_seconds())
        rounds.append(run(out, *large()))
    cases, sides = len(first.document["cases"]), len(list((out / "sides").iterdir()))
    known, ended = [item.engines_over for item in rounds], [item.whole for item in rounds]
    ratio, again = statistics.median(known) / statistics.median(bare), first.whole / statistics.median(ended)
    print(
        f"resume of {cases} finished cases of {sides} side runs: nothing to be done is known after {_s(known)} s, "
        f"{ratio:.0f} times xcfg --help; all compared again from the tensors after {_s(ended)} s; first run "
        f"{first.whole:.1f} s, ratio {again:.2f}"
    )


def help_seconds() -> float:
    """Wall time of ``xcfg --help``: how fast the machine is now."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "xcfg.cli", "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def share(engine_s: float, whole: float) -> str:
    """How much of a run of one engine at a time, from start to end of the command, was not its engines'."""
    return f"{(whole - engine_s) / whole:.2%} of {whole:.1f} s without an engine"


def _s(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _ms(values: Sequence[float]) -> str:
    return f"{statistics.median(values) * 1e3:.1f} ({min(values) * 1e3:.1f} to {max(values) * 1e3:.1f})"


def main() -> None:
    """Print every figure."""
    with tempfile.TemporaryDirectory() as folder:
        a_case(Path(folder))
        engines_alone(Path(folder))
        resumed(Path(folder))


if __name__ == "__main__":
    main()
