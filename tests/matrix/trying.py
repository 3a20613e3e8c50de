"""Trying every value of every knob of a scorer, each in a case of its own, and reading what came of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from xcfg.model.ids import canonical
from xcfg.model.knob import Kind
from xcfg.model.scorer import Role
from xcfg.plugin.registry import load_registry

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "docs/examples/qwen3-tiny"
TOKENS = ({"id": "a", "prompt_ids": [5, 9, 60, 33, 7], "response_ids": [8, 200, 31, 77, 6, 512, 90, 4]},
          {"id": "b", "prompt_ids": [300, 12], "response_ids": [41, 5, 9, 60]},
          {"id": "c", "prompt_ids": [7, 7, 7, 81, 2, 6], "response_ids": [19]})  # fmt: skip
OTHER = {"rollout": "training", "training": "rollout"}


def every_value(bench: Any, counts: Mapping[str, tuple[Any, ...]]) -> Iterator[tuple[str, Any]]:
    """(knob, value) of all that the scorer applies in this role. Raises LookupError for a knob without values."""
    registry = load_registry()
    knobs = registry.knobs()
    for name, how in sorted(registry.materializers(bench.scorer).items()):
        knob = knobs[name]
        if how.inapplicable or not knob.applies_to(Role(bench.role)) or name in bench.left_out:
            continue
        switch = (True, False) if knob.domain.kind is Kind.BOOL else ()
        own = bench.values.get(name) or knob.domain.values or switch or counts.get(name)
        if own is None:
            raise LookupError(f"benches.py gives no value of {name} to try with {bench.scorer}")
        more = [*how.values, *([None] if knob.domain.optional else [])]
        yield from ((name, value) for value in {canonical(item): item for item in (*own, *more)}.values())


def experiment_of(bench: Any, counts: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """An experiment with a case for each value that the baseline does not have."""
    cases = []
    for knob, value in every_value(bench, counts):
        wanted = {knob: value, **bench.besides(knob, value)}
        if any(bench.baseline.get(name, _UNSAID) != item for name, item in wanted.items()):
            cases.append({"name": case_name(knob, value), "set": wanted})
    sides = {role: {"scorer": bench.scorer if role == bench.role else "torch"} for role in OTHER}
    return {
        "schema": "xcfg.experiment/1",
        "name": f"{bench.scorer}-{bench.role}",
        "checkpoint": {"path": str(MODEL)},
        **sides,
        "tokens": {"recorded": "tokens.jsonl"},
        "baseline": dict(bench.baseline),
        "cases": cases,
    }


def case_name(knob: str, value: Any) -> str:
    """The name of the case in which a knob has a value."""
    return f"{knob}={json.dumps(value)}"


_UNSAID = object()


def run(bench: Any, counts: Mapping[str, tuple[Any, ...]], folder: Path) -> dict[str, Any]:
    """Run all cases; the document that ``xcfg run`` prints. Raises RuntimeError where it prints none."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokens.jsonl").write_text("".join(json.dumps(item) + "\n" for item in TOKENS))
    path = folder / "experiment.json"
    path.write_text(json.dumps(experiment_of(bench, counts), indent=1))
    command = [sys.executable, "-m", "xcfg.cli", "run", str(path), "--out", str(folder / "out"), "--json"]
    done = subprocess.run([*command, "--max-cases", "2000"], stdout=subprocess.PIPE, text=True, check=False)
    document = json.loads(done.stdout)
    if "cases" not in document:
        raise RuntimeError(done.stdout)
    return document


def matrix(bench: Any, counts: Mapping[str, tuple[Any, ...]], document: Mapping[str, Any]) -> dict[str, Any]:
    """What came of every value, as ``compatibility.json`` holds it."""
    cases = {case["name"]: case for case in document["cases"]}
    rows = []
    for knob, value in every_value(bench, counts):
        case = cases.get(case_name(knob, value), cases["baseline"])
        row = {"knob": knob, "value": value, **outcome(knob, bench.role, case)}
        beside = bench.besides(knob, value)
        rows.append({**row, "beside": dict(beside)} if beside else row)
    engine = {name: metadata.version(name) for name in bench.engine}
    return {"scorer": bench.scorer, "role": bench.role, "engine": engine, "device": "cpu", "tried": rows}


def outcome(knob: str, role: str, case: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome in one case. Raises RuntimeError where the case says nothing of the value."""
    status, side = case["status"], case["knobs"].get(knob, {}).get("sides", {}).get(role)
    if status in ("pass", "fail") and side is not None:
        return {"outcome": "applied", "observed": side["observed"]}
    if status == "invalid_provenance" and side is not None:
        return {"outcome": "substituted", "observed": side["observed"], "reason": side["reason"] or case["reason"]}
    if status in ("unsupported", "launch_error", "scorer_error"):
        return {"outcome": "refused", "reason": case["reason"]}
    raise RuntimeError(f"{case['name']}: {status}: {case['reason']}")
