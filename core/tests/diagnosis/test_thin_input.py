"""Input that gives little to go by: no crash, no guess with high confidence."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from xcfg.diagnosis.diagnose import MINIMUM_TOKENS, diagnose
from xcfg.diagnosis.floor import TYPICAL, noise_floor
from xcfg.diagnosis.observed import Observed, Rows, Side, Stated

from .drawn import text
from .faults import clean, tempered, with_training


def flat(rollout: np.ndarray, training: np.ndarray, lengths: list[int], dtype: str = "bfloat16", **rows) -> Observed:
    length = np.array(lengths, dtype=np.int64)
    position = np.concatenate([np.arange(n) for n in lengths]) if lengths else np.zeros(0, dtype=np.int64)
    sides = [Side(logprob=np.asarray(v, dtype=np.float64), stated=Stated(dtype=dtype)) for v in (rollout, training)]
    return Observed(
        rows=Rows(length=length, **rows),
        position=position,
        token=np.arange(len(position)) % 5,
        rollout=sides[0],
        training=sides[1],
    )


@pytest.mark.parametrize("tokens", range(MINIMUM_TOKENS))
def test_too_few_tokens_are_said_to_be_too_few(tokens: int) -> None:
    found = diagnose(flat(np.full(tokens, -1.0), np.full(tokens, -3.0), [tokens] if tokens else []))
    assert found.too_few and found.tokens == tokens
    assert [(item.kind, item.confidence) for item in found.signatures] == [("unknown", "low")]


@pytest.mark.parametrize("tokens", [8, 20, 400])
@pytest.mark.parametrize("value", [0.0, -1.0, -40.0])
def test_the_same_numbers_on_both_sides_are_the_floor(tokens: int, value: float) -> None:
    same = np.full(tokens, value)
    assert [item.kind for item in diagnose(flat(same, same, [tokens])).signatures] == ["floor"]


@pytest.mark.parametrize("lengths", [[60], [1] * 60, [30, 30], [59, 1]])
def test_constant_logprobs_on_one_side_do_not_crash(lengths: list[int]) -> None:
    rng = np.random.default_rng(0)
    varied = -rng.gamma(0.5, 2.0, 60)
    for pair in ((varied, np.full(60, -1.0)), (np.full(60, -1.0), varied), (np.full(60, -1.0), np.full(60, -2.0))):
        assert diagnose(flat(*pair, lengths)).signatures


@pytest.mark.parametrize("lengths", [[9], [3, 3, 3], [1] * 9])
def test_nine_tokens_give_no_high_confidence(lengths: list[int]) -> None:
    rng = np.random.default_rng(1)
    rollout = -rng.gamma(0.5, 2.0, 9)
    for training in (rollout - 0.5, np.roll(rollout, 1), rollout * 1.5, np.zeros(9), -rng.gamma(0.5, 2.0, 9)):
        found = diagnose(flat(rollout, training, lengths))
        assert all(item.confidence != "high" for item in found.signatures if item.kind != "floor")


def test_metadata_of_one_value_name_nothing() -> None:
    rng = np.random.default_rng(2)
    words = text(rng, 12, 60)
    drawn = clean(rng, words)
    same = np.zeros(12, dtype=np.int64)
    rows = evolve(drawn.rows, padding=same + 4, batch=same, step=same, rollout_rank=same, train_rank=None)
    assert diagnose(evolve(drawn, rows=rows)).signatures[0].kind == "floor"


def test_a_stated_temperature_that_the_data_do_not_show() -> None:
    rng = np.random.default_rng(3)
    drawn = clean(rng, text(rng))
    stated = Stated(dtype="bfloat16", mode="processed_logprobs", temperature=0.6)
    found = diagnose(evolve(drawn, rollout=evolve(drawn.rollout, stated=stated)))
    assert found.signatures[0].kind == "floor"
    assert "0.6" in found.notes[0] and "the data are believed" in found.notes[0]


def test_a_stated_temperature_that_the_data_contradict() -> None:
    rng = np.random.default_rng(3)
    drawn = tempered(rng, text(rng), at=0.6)
    stated = Stated(dtype="bfloat16", mode="processed_logprobs", temperature=1.5)
    found = diagnose(evolve(drawn, training=evolve(drawn.training, stated=stated)))
    assert found.signatures[0].kind == "temperature"
    assert any("the data are believed" in note for note in found.notes)


def test_bfloat16_noise_under_a_statement_of_float32() -> None:
    rng = np.random.default_rng(3)
    drawn = clean(rng, text(rng))
    sides = {name: evolve(getattr(drawn, name), stated=Stated(dtype="float32")) for name in ("rollout", "training")}
    found = diagnose(evolve(drawn, **sides))
    assert found.signatures[0].kind != "floor"
    assert any("usual in bfloat16" in note for note in found.notes)


@pytest.mark.parametrize("dtype", list(TYPICAL))
def test_the_floor_is_the_scale_of_the_noise_within_the_bounds_of_the_dtype(dtype: str) -> None:
    rng = np.random.default_rng(4)
    rollout = -rng.uniform(0.9, 1.1, 20_000)
    for times, expected in ((0.01, 0.1), (1.0, 1.0), (2.0, 2.0), (50.0, 3.0)):
        drift = times * TYPICAL[dtype] * rng.standard_t(3, 20_000) * 1.25  # 1 + a quarter of 1 nat
        floor = noise_floor(flat(rollout, rollout + drift, [20_000], dtype))
        assert np.median(floor.scale) == pytest.approx(1.25 * expected * TYPICAL[dtype], rel=0.06)
        assert floor.bounded == (times > 3)


def test_the_floor_holds_where_half_of_the_tokens_drift() -> None:
    rng = np.random.default_rng(5)
    drawn = clean(rng, text(rng, 40, 100))
    drifts = rng.random(len(drawn.token)) < 0.5
    off = with_training(drawn, drawn.training.logprob - np.where(drifts, 2.0, 0.0))
    before, after = (float(np.median(noise_floor(value).scale)) for value in (drawn, off))
    assert after < 3.0 * before
