"""Trying every value of every knob of a scorer, each in a case of its own, and reading what came of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from xcfg.model.ids import canonical
from xcfg.model.knob import Kind
from xcfg.model.scorer import Role
from xcfg.plugin.registry import Registry, load_registry

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "docs/examples/qwen3-tiny"
TOKENS = ({"id": "a", "prompt_ids": [5, 9, 60, 33, 7], "response_ids": [8, 200, 31, 77, 6, 512, 90, 4]},
          {"id": "b", "prompt_ids": [300, 12], "response_ids": [41, 5, 9, 60]},
          {"id": "c", "prompt_ids": [7, 7, 7, 81, 2, 6], "response_ids": [19]})  # fmt: skip
OTHER = {"rollout": "training", "training": "rollout"}


@cache
def _registry() -> Registry:
    """The plugins, loaded once."""
    return load_registry()


def every_value(
    bench: Any, counts: Mapping[str, tuple[Any, ...]], only: Collection[str] = ()
) -> Iterator[tuple[str, Any]]:
    """(knob, value) of all that the scorer applies in this role, or of the knobs ``only``.

    Raises LookupError for a knob without values.
    """
    registry = _registry()
    knobs = registry.knobs()
    for name, how in sorted(registry.materializers(bench.scorer).items()):
        knob = knobs[name]
        if how.inapplicable or not knob.applies_to(Role(bench.role)) or name in bench.left_out:
            continue
        if only and name not in only:
            continue
        switch = (True, False) if knob.domain.kind is Kind.BOOL else ()
        own = bench.values.get(name) or knob.domain.values or switch or counts.get(name)
        if own is None:
            raise LookupError(f"benches.py gives no value of {name} to try with {bench.scorer}")
        more = [*how.values, *([None] if knob.domain.optional else [])]
        yield from ((name, value) for value in {canonical(item): item for item in (*own, *more)}.values())


def experiment_of(bench: Any, values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An experiment with a case for each value that the baseline does not have."""
    cases = {
        case_name(bench, knob, value): {knob: value, **bench.besides(knob, value)}
        for knob, value in values
        if not in_baseline(bench, knob, value)
    }
    sides = {role: {"scorer": bench.scorer if role == bench.role else "torch"} for role in OTHER}
    return {
        "schema": "xcfg.experiment/1",
        "name": f"{bench.scorer}-{bench.role}",
        "checkpoint": {"path": str(MODEL)},
        **sides,
        "tokens": {"recorded": "tokens.jsonl"},
        "baseline": dict(bench.baseline),
        "cases": [{"name": name, "set": chosen} for name, chosen in cases.items()],
    }


def in_baseline(bench: Any, knob: str, value: Any) -> bool:
    """Whether the baseline has this value, said or by default, and whatever it is tried beside."""
    knobs = _registry().knobs()
    wanted = {knob: value, **bench.besides(knob, value)}
    return all(
        canonical(bench.baseline.get(name, knobs[name].default)) == canonical(item) for name, item in wanted.items()
    )


def case_name(bench: Any, knob: str, value: Any) -> str:
    """The name of the case in which a knob has a value: all that it sets, so that two values may share one."""
    chosen = {knob: value, **bench.besides(knob, value)}
    return ", ".join(f"{name}={json.dumps(item)}" for name, item in sorted(chosen.items()))


def run(bench: Any, values: Iterable[tuple[str, Any]], folder: Path) -> dict[str, Any]:
    """Run all cases; those that were planned and those that ran, by name. Raises RuntimeError where nothing is."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokens.jsonl").write_text("".join(json.dumps(item) + "\n" for item in (*TOKENS, *bench.tokens)))
    path = folder / "experiment.json"
    path.write_text(json.dumps(experiment_of(bench, values), indent=1))
    planned = _xcfg("plan", str(path), "--max-cases", "2000")
    ran = _xcfg("run", str(path), "--max-cases", "2000", "--out", str(folder / "out"))
    rejected = {case["name"]: case["rejected"] for case in planned["cases"] if case["rejected"] is not None}
    return {"rejected": rejected, "ran": {case["name"]: case for case in ran["cases"]}}


def _xcfg(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "xcfg.cli", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    if "cases" not in document:
        raise RuntimeError(done.stdout)
    return document


def matrix(bench: Any, values: Iterable[tuple[str, Any]], found: Mapping[str, Any]) -> dict[str, Any]:
    """What came of the values, as ``compatibility.json`` holds it. Raises KeyError for a case that is nowhere."""
    rows = []
    for knob, value in values:
        name = "baseline" if in_baseline(bench, knob, value) else case_name(bench, knob, value)
        if name in found["rejected"]:
            said = {"outcome": "refused", "reason": found["rejected"][name]}
        else:
            said = outcome(knob, bench.role, found["ran"][name])
        row = {"knob": knob, "value": value, **said}
        beside = bench.besides(knob, value)
        rows.append({**row, "beside": dict(beside)} if beside else row)
    engine = {name: metadata.version(name) for name in bench.engine}
    return {"scorer": bench.scorer, "role": bench.role, "engine": engine, "device": "cpu", "tried": rows}


def outcome(knob: str, role: str, case: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome in one case. Raises RuntimeError where the case says nothing of the value.

    A value may make the sides mean different things by a logprob (``invalid_identity``): it was applied all the same,
    or the case would have been ``invalid_provenance``.
    """
    status, side = case["status"], case["knobs"].get(knob, {}).get("sides", {}).get(role)
    if status in ("pass", "fail", "invalid_identity") and side is not None:
        return {"outcome": "applied", "observed": side["observed"]}
    if status == "invalid_provenance" and side is not None:
        return {"outcome": "substituted", "observed": side["observed"], "reason": side["reason"] or case["reason"]}
    if status in ("unsupported", "launch_error", "scorer_error"):
        return {"outcome": "refused", "reason": case["reason"]}
    raise RuntimeError(f"{case['name']}: {status}: {case['reason']}")
