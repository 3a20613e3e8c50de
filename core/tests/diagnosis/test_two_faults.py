from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from xcfg.diagnosis.diagnose import diagnose

from .drawn import text
from .faults import FAULTS, with_training

FIRST = ["stale-tail", "rank", "left-padding", "constant-offset", "temperature"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", FIRST)
def test_zeros_beside_another_fault_are_both_named(name: str, dtype: str) -> None:
    rng = np.random.default_rng(9)
    drawn = FAULTS[name](rng, text(rng, 24, 120, dtype=dtype))
    zeros = rng.random(len(drawn.token)) < 0.05
    both = evolve(drawn, rollout=evolve(drawn.rollout, logprob=np.where(zeros, 0.0, drawn.rollout.logprob)))
    assert {item.kind for item in diagnose(both).signatures} >= {name, "padded-zero"}


@pytest.mark.parametrize("name", ["stale-tail", "boundary-end", "rank"])
def test_an_offset_beside_drift_of_some_tokens_is_taken_out(name: str) -> None:
    rng = np.random.default_rng(4)
    drawn = FAULTS[name](rng, text(rng, 24, 120, dtype="bfloat16"))
    both = with_training(drawn, drawn.training.logprob - 0.3)
    found = {item.kind: item for item in diagnose(both).signatures}
    assert {name, "constant-offset"} <= found.keys()
    assert found["constant-offset"].evidence["offset"] == pytest.approx(-0.3, abs=0.02)
