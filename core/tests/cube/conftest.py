"""Hand-made plans and outcomes: every number follows from the case's index, so tests can state it."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcfg.model.attempt import Measured, SideFailure
from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import Checkpoint, Experiment, SideSpec, TokenSource
from xcfg.model.outcome import CaseOutcome, PairedTokens, SideOutcome
from xcfg.model.plan import Plan
from xcfg.model.provenance import KnobProvenance, KnobState, SideProvenance
from xcfg.model.result import Comparison, RankComparison
from xcfg.model.scorer import Role
from xcfg.model.status import Status
from xcfg.model.tolerance import ContractRef

ATTRIBUTES = {
    "identity": {"tokens": "ab" * 32},
    "contract": {"id": "ws1", "version": "1", "digest": "cd" * 32},
    "plugins": {"xcfg": "0.1.0"},
    "measured": {"host": "example"},
}


def one_case(axes: Mapping[str, Any]) -> Case:
    name = "-".join(f"{value}".lower() for value in axes.values()) or "baseline"
    knobs = dict(axes)
    return Case(
        id=hashlib.sha256(repr(sorted(axes.items())).encode()).hexdigest()[:16],
        name=name,
        axes=axes,
        rollout=SideConfig(role=Role.ROLLOUT, scorer="fake", checkpoint=Checkpoint(path="model"), knobs=knobs),
        training=SideConfig(role=Role.TRAINING, scorer="fake", checkpoint=Checkpoint(path="model"), knobs=knobs),
    )


def a_plan(dimensions: Sequence[str], cases: Sequence[Case]) -> Plan:
    return Plan(
        experiment=Experiment(
            name="test",
            checkpoint=Checkpoint(path="model"),
            rollout=SideSpec(scorer="fake"),
            training=SideSpec(scorer="fake"),
            tokens=TokenSource(recorded="tokens.jsonl"),
        ),
        root=".",
        baseline=cases[0].id,
        dimensions=tuple(dimensions),
        tokens={},
        cases=tuple(cases),
    )


def product_plan(axes: Mapping[str, Sequence[Any]]) -> Plan:
    points = itertools.product(*axes.values())
    return a_plan(tuple(axes), [one_case(dict(zip(axes, point, strict=True))) for point in points])


def tokens_of(number: int, count: int) -> PairedTokens:
    half = count // 2
    return PairedTokens.of_tokens(
        sequence_ids=("a", "b"),
        sequence=np.array([0] * half + [1] * (count - half), dtype=np.int64),
        position=np.concatenate([np.arange(half), np.arange(count - half)]),
        token=np.arange(count, dtype=np.int64) + 100 * number,
        rollout_logp=np.full(count, -1.0 - number, dtype=np.float32),
        train_logp=np.full(count, -1.5 - number, dtype=np.float32),
        rollout_rank=np.zeros(count, dtype=np.int64),
        train_rank=np.arange(count, dtype=np.int64) % 2,
    )


def passed(case: Case, number: int, *, count: int = 6, attempt: int = 1) -> CaseOutcome:
    """Case ``number`` has max_abs_dlogp number / 8, so it passes the limit 1 up to number 8."""
    knobs = {
        name: KnobProvenance(requested=value, materialized=value, observed=value, state=KnobState.APPLIED)
        for name, value in case.axes.items()
    }
    side = SideOutcome(
        side_id=f"side-{number}",
        attempt=attempt,
        provenance=SideProvenance(knobs=knobs),
        measured=Measured(phases={"score": 1.0 / attempt}, peak_rss={"0": 1000 * attempt}),
    )
    return CaseOutcome(
        case=case,
        comparison=Comparison(
            status=Status.PASS if number <= 8 else Status.FAIL,
            dtype="bfloat16",
            threshold=1.0,
            within_baseline_row=number <= 4,
            baseline_dtype="float32",
            contract=ContractRef(id="ws1", version="1", digest="cd" * 32),
            active_tokens=count,
            metrics={"max_abs_dlogp": number / 8, "mean_abs_dlogp": number / 16},
            per_rank=tuple(
                RankComparison(
                    rollout_rank=0,
                    train_rank=rank,
                    active_tokens=count // 2,
                    metrics={"max_abs_dlogp": number / 8 - rank},
                    training={"parallel": {"dp": 2}},
                )
                for rank in (0, 1)
            ),
        ),
        rollout=side,
        training=side,
        tokens=tokens_of(number, count),
    )


def failed(case: Case, status: Status = Status.SCORER_ERROR) -> CaseOutcome:
    dead = SideOutcome(
        attempt=2,
        failure=SideFailure(status=status.value, reason="worker died", logs=("sides/x/attempt-0002/rank-0.log",)),
    )
    return CaseOutcome(
        case=case,
        comparison=Comparison(
            status=status, reason="worker died", contract=ContractRef(id="ws1", version="1", digest="cd" * 32)
        ),
        rollout=dead,
        training=SideOutcome(side_id="side-t"),
    )


def hashes(root: Path, *, measured: bool = False) -> dict[str, str]:
    """SHA-256 of every file of the result group."""
    found = {}
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root).as_posix()
        if file.is_file() and (measured or not name.startswith("measured/")):
            found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


class Build:
    """The builders above under one fixture: test modules are imported by path and cannot import this file."""

    attributes = ATTRIBUTES
    case = staticmethod(one_case)
    plan = staticmethod(a_plan)
    product = staticmethod(product_plan)
    tokens = staticmethod(tokens_of)
    passed = staticmethod(passed)
    failed = staticmethod(failed)
    hashes = staticmethod(hashes)

    @staticmethod
    def all_passed(plan: Plan, make: Callable[..., CaseOutcome] = passed, **options: Any) -> list[CaseOutcome]:
        return [make(case, number, **options) for number, case in enumerate(plan.cases)]


@pytest.fixture(scope="session")
def build() -> type[Build]:
    return Build


@pytest.fixture(scope="session")
def small(build: type[Build]) -> Plan:
    """2 x 3 x 2 cases over a text, an int and a bool axis."""
    return build.product(
        {"rollout.dtype": ["float32", "bfloat16"], "batch.size": [1, 2, 8], "execution.prefix_cache": [False, True]}
    )
