from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from xcfg.comparator.compare import compare
from xcfg.comparator.recorded.pairs import PairsWriter
from xcfg.diagnosis.build import Built, chosen_rows, of_pair, of_stored, of_tokens
from xcfg.diagnosis.findings import diagnosed
from xcfg.diagnosis.observed import Stated
from xcfg.model.json import thaw
from xcfg.model.outcome import PairedTokens
from xcfg.model.tolerance import ContractRef, ToleranceContract

from ..comparator.conftest import make_side
from .drawn import text
from .faults import FAULTS

CONTRACT = ToleranceContract(
    ref=ContractRef(id="made-up", version="1", digest="d" * 64),
    clip_interval=(0.75, 1.25),
    max_abs_dlogp={"float32": 2.0**-10, "bfloat16": 2.0**-3},
    approx_kl0={"float32": 1e-6, "bfloat16": 1e-2},
    clipfrac0={"float32": 0.0, "bfloat16": 0.0},
)


@pytest.mark.parametrize(
    ("lengths", "most", "rows"),
    [
        ([5, 5, 5, 5], 20, [0, 1, 2, 3]),
        ([5, 5, 5, 5], 19, [0, 2]),
        ([5, 5, 5, 5], 9, [0]),
        ([9, 1, 9, 1], 10, [0, 3]),
        ([1, 9, 1, 9], 10, [0, 2]),
        ([30], 10, [0]),
        ([], 10, []),
    ],
)
def test_whole_rows_evenly_spaced_up_to_the_cap(lengths: list[int], most: int, rows: list[int]) -> None:
    assert chosen_rows(np.array(lengths, dtype=np.int64), most).tolist() == rows


def paired(ranks: tuple[int, int, int] = (0, 1, 0)) -> PairedTokens:
    return PairedTokens(
        sequence_ids=("a", "b", "c"),
        row_sequence=np.array([0, 1, 2]),
        row_length=np.array([2, 1, 3]),
        row_rollout_rank=np.array(ranks),
        row_train_rank=np.array([2, 2, 2]),
        position=np.array([0, 2, 0, 0, 1, 2]),
        token=np.array([7, 8, 9, 10, 11, 12]),
        rollout_logp=np.array([-1, -2, -3, -4, -5, -6], dtype=np.float32),
        train_logp=np.array([-1.5, -2, -3, -4, -5, -6.25], dtype=np.float32),
    )


def test_from_paired_tokens() -> None:
    built = of_tokens(paired(), stated=(Stated(dtype="float32"), Stated(dtype="bfloat16")))
    assert built.evidence() == {"tokens": 6, "of_tokens": 6, "rows": 3, "of_rows": 3}
    assert built.observed.d.tolist() == [-0.5, 0, 0, 0, 0, -0.25]
    assert built.observed.rows.length.tolist() == [2, 1, 3]
    assert built.observed.rows.rollout_rank.tolist() == [0, 1, 0]
    assert built.observed.training.stated.dtype == "bfloat16"


def test_a_cap_takes_whole_rows_and_says_so() -> None:
    built = of_tokens(paired(), most=5)
    assert built.evidence() == {"tokens": 5, "of_tokens": 6, "rows": 2, "of_rows": 3}
    assert built.observed.token.tolist() == [7, 8, 10, 11, 12]
    assert built.observed.position.tolist() == [0, 2, 0, 1, 2]


def test_from_a_recorded_comparison(tmp_path: Path) -> None:
    tokens = paired(ranks=(-1, -1, -1))
    ends = np.cumsum(tokens.row_length)
    with PairsWriter(tmp_path, wide=(False, False)) as writer:
        for name, length, end in zip(tokens.sequence_ids, tokens.row_length, ends, strict=True):
            here = slice(end - length, end)
            writer.sequence(name.encode())
            columns = {
                "rollout": tokens.rollout_logp[here],
                "train": tokens.train_logp[here],
                "position": tokens.position[here],
                "token": tokens.token[here],
            }
            writer.row((-1, 2), columns, judged=name != "b")
        built = of_stored(writer.finish())
    assert built.evidence() == {"tokens": 5, "of_tokens": 5, "rows": 2, "of_rows": 2}
    assert built.observed.token.tolist() == [7, 8, 10, 11, 12]
    assert built.observed.d.tolist() == [-0.5, 0, 0, 0, -0.25]
    assert built.observed.rows.rollout_rank is None  # nobody recorded one
    assert built.observed.rows.train_rank.tolist() == [2, 2]


def test_from_a_judged_pair() -> None:
    logprobs = [[-1.0, -2.0, -3.0], [-0.5, -0.25]]
    rollout = make_side(logprobs, dtype="bfloat16")
    training = make_side([[value - 0.5 for value in row] for row in logprobs], dtype="float32")
    comparison, tokens = compare(rollout, training, CONTRACT)
    assert tokens is not None, comparison.reason
    built = of_pair(tokens, rollout, training)
    assert built.observed.d.tolist() == [-0.5] * 5
    assert built.observed.rows.prompt_length.tolist() == [2, 3]
    assert built.observed.rows.response_length.tolist() == [3, 2]
    assert [side.stated.dtype for side in (built.observed.rollout, built.observed.training)] == ["bfloat16", "float32"]
    assert built.observed.rollout.stated.temperature == 1.0


def test_findings_carry_the_signature_and_what_was_looked_at() -> None:
    built = of_tokens(paired())
    few = diagnosed(built)
    assert [(item.source_class, item.rule, item.confidence) for item in few] == [
        ("unresolved", "signature:unknown", "low")
    ]
    assert "too few" in few[0].advice
    assert few[0].evidence["looked_at"]["tokens"] == 6
    json.dumps(thaw(few[0].evidence))


def test_every_signature_can_be_written_as_json() -> None:
    for seed, name in enumerate(FAULTS):
        rng = np.random.default_rng(seed)
        drawn = FAULTS[name](rng, text(rng, 12, 60))
        built = Built(observed=drawn, tokens=1, of_tokens=1, rows=1, of_rows=1)
        for item in diagnosed(built):
            json.dumps(thaw(item.evidence), allow_nan=False)
