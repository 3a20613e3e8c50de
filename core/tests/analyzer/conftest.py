"""Builders of judged comparisons and curves with made-up figures."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.analyzer.curves import Curves
from xcfg.analyzer.evidence import Evidence
from xcfg.model.result import Comparison, RankComparison, WorstToken
from xcfg.model.status import Status
from xcfg.model.tolerance import ContractRef

LIMIT = 0.25


def make_comparison(largest=1.0, *, status=None, assumed=(), ranks=()):
    """Judged against a limit of 0.25 nats; ``ranks`` of (rollout rank, training rank, max, mean, tokens)."""
    return Comparison(
        status=status or (Status.PASS if largest <= LIMIT else Status.FAIL),
        dtype="bfloat16",
        threshold=LIMIT,
        contract=ContractRef(id="made-up", version="1", digest="d" * 64),
        active_tokens=100,
        metrics={"max_abs_dlogp": largest, "mean_abs_dlogp": largest / 10},
        worst=WorstToken(
            sequence="s1", position=2, token=3, rollout_logp=-1.0, train_logp=-2.0, rollout_rank=0, train_rank=0
        ),
        per_rank=[
            RankComparison(
                rollout_rank=left,
                train_rank=right,
                active_tokens=tokens,
                metrics={"max_abs_dlogp": most, "mean_abs_dlogp": mean} if tokens else {},
                rollout={"rank": left, "compute_dtype": "bfloat16"},
                training={"rank": right, "compute_dtype": "float16" if most > LIMIT else "bfloat16"},
            )
            for left, right, most, mean, tokens in ranks
        ],
        assumed=assumed,
    )


def make_curves(**columns):
    """Curves over steps 0, 1, ...; ``eval_NAME`` is the evaluation NAME."""
    columns = {name.replace("eval_", "eval/"): np.array(values, dtype=float) for name, values in columns.items()}
    rows = len(next(iter(columns.values())))
    return Curves(step=np.arange(rows), columns=columns, headers={name: name for name in columns})


@pytest.fixture(scope="session")
def comparison():
    """The builder of comparisons."""
    return make_comparison


@pytest.fixture(scope="session")
def curves():
    """The builder of curves."""
    return make_curves


@pytest.fixture(scope="session")
def evidence():
    """The builder of evidence: the arguments of a comparison, and columns of curves."""

    def build(largest=1.0, *, columns=None, **kwargs):
        return Evidence(
            comparison=make_comparison(largest, **kwargs), curves=make_curves(**columns) if columns else None
        )

    return build


@pytest.fixture(scope="session")
def moving():
    """A curve of 30 points at ``level`` that is ``factor`` times as large from ``step`` on."""

    def build(level, step=None, factor=10.0):
        return [level * (factor if step is not None and at >= step else 1.0) for at in range(30)]

    return build
