"""The result cube at 100,000 executed cases and 20 metrics: appending, opening, filtering, bytes. Prints figures.

``python tests/bench/cube.py`` makes the cube in commits of 1,000 cases and reads it, beside the same columns in Parquet
(pyarrow) and as variables of xarray over plain zarr (:mod:`cube_beside`). A reading is a process of its own
(:mod:`cube_read`); of five the fastest counts. A number as argument is that of the cases.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from cube_beside import write_columns, write_parquet, write_xarray

from xcfg.cube.writer import commit
from xcfg.model.attempt import Measured
from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import Checkpoint, Experiment, SideSpec, TokenSource
from xcfg.model.outcome import CaseOutcome, PairedTokens, SideOutcome
from xcfg.model.plan import Plan
from xcfg.model.provenance import KnobProvenance, KnobState, SideProvenance
from xcfg.model.result import METRIC_NAMES, Comparison, RankComparison, WorstToken
from xcfg.model.scorer import Role
from xcfg.model.status import Status
from xcfg.model.tolerance import ContractRef

AXES = {
    "rollout.dtype": ["bfloat16", "float16", "float32", *(f"fp8_{kind}" for kind in range(7))],
    "training.compute_dtype": [None, "bfloat16", "float16", "float32", *(f"fp8_{kind}" for kind in range(6))],
    "parallel.tensor": list(range(1, 11)),
    "batch.micro_size": [2**power for power in range(10)],
    "sampling.temperature": [step / 10 for step in range(1, 11)],
}
CASES, METRICS, TOKENS, BATCH, TURNS = 100_000, 20, 4, 1_000, 5
CHECKPOINT = Checkpoint(path="model")
CONTRACT = ContractRef(id="ws1", version="1", digest="cd" * 32)


def planned(count: int) -> Plan:
    """The first ``count`` cases of the product of the axes."""
    cases = []
    for point in itertools.islice(itertools.product(*AXES.values()), count):
        knobs = dict(zip(AXES, point, strict=True))
        name = hashlib.sha256(repr(point).encode()).hexdigest()[:16]
        sides = [SideConfig(role=role, scorer="fake", checkpoint=CHECKPOINT, knobs=knobs) for role in Role]
        cases.append(Case(id=name, axes=knobs, rollout=sides[0], training=sides[1]))
    experiment = Experiment(
        name="bench",
        checkpoint=CHECKPOINT,
        rollout=SideSpec(scorer="fake"),
        training=SideSpec(scorer="fake"),
        tokens=TokenSource(recorded="tokens.jsonl"),
    )
    return Plan(
        experiment=experiment, root=".", baseline=cases[0].id, dimensions=tuple(AXES), tokens={}, cases=tuple(cases)
    )


def judged(case: Case, number: int) -> CaseOutcome:
    """One executed case: random numbers in every metric, one pair of ranks, a few tokens."""
    rng = np.random.default_rng(number)
    metrics = dict(zip(METRIC_NAMES[:METRICS], rng.random(METRICS).tolist(), strict=True))
    logp = -rng.random((2, TOKENS)).astype(np.float32)
    tokens = PairedTokens.of_tokens(
        sequence_ids=("prompt-0", "prompt-1"),
        sequence=np.arange(TOKENS) * 2 // TOKENS,
        position=np.arange(TOKENS) % (TOKENS // 2),
        token=rng.integers(0, 150_000, TOKENS),
        rollout_logp=logp[0],
        train_logp=logp[1],
        rollout_rank=np.zeros(TOKENS, dtype=np.int64),
        train_rank=np.zeros(TOKENS, dtype=np.int64),
    )
    knobs = {
        name: KnobProvenance(requested=value, materialized=value, observed=value, state=KnobState.APPLIED)
        for name, value in case.axes.items()
    }
    sides = [
        SideOutcome(
            side_id=f"{case.id}{role.value}",
            attempt=1,
            provenance=SideProvenance(knobs=knobs),
            measured=Measured(phases={"score": float(rng.random())}, peak_rss={"0": int(rng.integers(2**30))}),
        )
        for role in Role
    ]
    found = Comparison(
        status=Status.PASS if metrics["max_abs_dlogp"] < 0.5 else Status.FAIL,
        dtype="bfloat16",
        threshold=0.5,
        within_baseline_row=False,
        baseline_dtype="float32",
        contract=CONTRACT,
        active_tokens=TOKENS,
        metrics=metrics,
        per_rank=[RankComparison(rollout_rank=0, train_rank=0, active_tokens=TOKENS, metrics=metrics)],
        worst=WorstToken(
            sequence="prompt-0",
            position=1,
            token=7,
            rollout_logp=float(logp[0, 1]),
            train_logp=float(logp[1, 1]),
            rollout_rank=0,
            train_rank=0,
        ),
    )
    return CaseOutcome(case=case, comparison=found, rollout=sides[0], training=sides[1], tokens=tokens)


def appended(path: Path, plan: Plan) -> list[float]:
    """Seconds of each commit of 1,000 cases."""
    spent = []
    for start in range(0, len(plan.cases), BATCH):
        outcomes = [judged(case, start + at) for at, case in enumerate(plan.cases[start : start + BATCH])]
        began = time.perf_counter()
        commit(path, plan, outcomes, {"contract": {"id": "ws1"}, "measured": {"host": "bench"}})
        spent.append(time.perf_counter() - began)
    return spent


def size(place: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    return sum(path.stat().st_size for path in ([place] if place.is_file() else place.rglob("*")) if path.is_file())


def fastest(kind: str, place: Path) -> str:
    """Seconds, memory and rows of the fastest of five readings."""
    script = str(Path(__file__).with_name("cube_read.py"))
    runs = [json.loads(subprocess.check_output([sys.executable, script, kind, str(place)])) for _ in range(TURNS)]
    best = min(runs, key=lambda run: run["seconds"])
    return f"{best['seconds']:.2f} s, {max(run['peak_mb'] for run in runs):.0f} MB, {best['rows']} rows"


def main() -> None:
    """Prints every figure."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    plan = planned(count)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cube = folder / "cube.zarr"
        spent = appended(cube, plan)
        each = [seconds / BATCH * 1e3 for seconds in spent]
        print(
            f"cube: {count} cases appended by {BATCH}: {sum(spent) / count * 1e3:.2f} ms a case; of single commits the "
            f"fastest {min(each):.2f}, the last {each[-1]:.2f}",
            flush=True,
        )
        others = {"parquet": write_parquet(cube, folder / "cases.parquet", BATCH)}
        others["xarray"] = write_xarray(cube, folder / "plain.zarr")
        for name, seconds in others.items():
            print(f"{name}: cells without evidence and tokens appended: {seconds / count * 1e3:.2f} ms a case")
        columns = write_columns(cube, folder / "columns")
        print(f"bytes: cube {size(cube) / 1e6:.1f} MB, the same columns in Parquet {columns / 1e6:.1f} MB, ", end="")
        print(f"ratio {size(cube) / columns:.2f}", flush=True)
        for kind, place in (("cube", cube), ("parquet", folder / "cases.parquet"), ("xarray", folder / "plain.zarr")):
            print(f"{kind}: open, filter by status and a metric, select: {fastest(kind, place)}", flush=True)
            print(f"{kind}: the same with an observed value in the filter: {fastest(f'{kind}+', place)}", flush=True)


if __name__ == "__main__":
    main()
