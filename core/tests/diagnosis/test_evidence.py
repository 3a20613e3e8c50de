"""The numbers a signature gives are those the fault was made with."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.diagnosis.diagnose import diagnose
from xcfg.diagnosis.signature import Signature

from .drawn import Text, text
from .faults import biased, blocks, capped, coarse, cut, long, offset, ranked, scaled, shifted, tempered, tempered_sums


def drawn(seed: int = 3, dtype: str = "float32") -> tuple[np.random.Generator, Text]:
    rng = np.random.default_rng(seed)
    return rng, text(rng, 24, 110, dtype=dtype)


def first(*made) -> Signature:
    return diagnose(*made).signatures[0]


@pytest.mark.parametrize("k", [-3, -1, 2])
def test_the_shift(k: int) -> None:
    rng, words = drawn()
    named = first(shifted(rng, words, -k))  # training[i - k] is rollout[i]: numpy rolls to the right
    assert (named.kind, named.evidence["shift"]) == ("shift", -k)
    assert named.explained > 0.99
    assert named.evidence["correlation_at_shift"] > 0.999 > 0.5 > named.evidence["correlation_at_0"]


@pytest.mark.parametrize("at", [0.6, 0.9])
def test_the_temperature_from_selected_logprobs_within_a_few_parts_in_a_hundred(at: float) -> None:
    rng, words = drawn(dtype="bfloat16")
    assert first(tempered(rng, words, at)).evidence["temperature_if_rollout_is_raw"] == pytest.approx(at, rel=0.04)


def test_the_temperature_from_normalisers_exactly() -> None:
    rng, words = drawn()
    named = first(tempered_sums(rng, words, 0.8))
    assert named.evidence["training_over_rollout_slope"] == pytest.approx(1.25, rel=1e-4)
    assert named.explained > 0.99


def test_the_softcap() -> None:
    rng, words = drawn()
    named = first(capped(rng, words, 7.0, lse=True))
    assert named.evidence["softcap"] == pytest.approx(7.0, rel=0.01)
    assert named.evidence["capped_side"] == "training"


def test_the_offset_and_the_part_of_logp() -> None:
    rng, words = drawn()
    assert first(offset(rng, words)).evidence["offset"] == pytest.approx(-0.2 * 0.05, abs=1e-5)
    assert first(scaled(rng, words)).evidence["part_of_logp"] == pytest.approx(0.15 * 0.05, rel=1e-2)


def test_where_it_starts() -> None:
    rng, words = drawn(dtype="bfloat16")
    assert first(long(rng, words, at=70)).evidence["from"] == pytest.approx(70, abs=2)
    assert first(cut(rng, words, value=-3.0)).evidence["from"] == int(np.quantile(words.lengths, 0.2))


def test_the_block() -> None:
    rng, words = drawn()
    named = first(blocks(rng, words, block=16))
    assert (named.evidence["block"], named.evidence["counted_in"]) == (16, "prompt and response")


def test_the_ranks_and_the_ids() -> None:
    rng, words = drawn()
    assert first(ranked(rng, words)).evidence["ranks"] == (1,)
    common = np.argsort(-np.bincount(words.token, minlength=80))
    named = first(biased(rng, words, ids=(2, 9), bias=1.5))
    assert set(named.evidence["token_ids"]) == {int(common[2]), int(common[9])}
    assert named.evidence["log_odds_moved"] == pytest.approx(1.5, abs=0.1)


def test_the_storage() -> None:
    rng, words = drawn()
    named = first(coarse(rng, words))
    assert (named.evidence["stored_as"], named.evidence["side"]) == ("bfloat16", "training")
    assert named.explained > 0.9
