"""A copy of the rollout's logprobs under the training side's name."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.errors import ArtifactError
from xcfg.importers.one_measurement import refuse_copy
from xcfg.model.recorded import Row

ROW = Row(place="batch.npz", fields={})
LOGPROBS = -np.arange(1, 41, dtype=np.float32) / 7


def test_equal_bits_are_one_measurement() -> None:
    with pytest.raises(ArtifactError, match=r"batch.npz: .*bit for bit \(40 tokens\).*turn bypass off"):
        refuse_copy(LOGPROBS, LOGPROBS.copy(), ROW, "turn bypass off")


def test_nan_in_the_same_places_is_equal_too() -> None:
    holed = LOGPROBS.copy()
    holed[3] = np.nan
    with pytest.raises(ArtifactError):
        refuse_copy(holed, holed.copy(), ROW, "")


def test_one_bit_apart_is_two_measurements() -> None:
    other = LOGPROBS.copy()
    other[39] = np.nextafter(other[39], np.float32(0))
    refuse_copy(LOGPROBS, other, ROW, "")


@pytest.mark.parametrize(
    "few", [np.empty(0), np.zeros(1000), np.full(15, -0.5), np.concatenate([np.zeros(1000), np.full(15, -0.5)])]
)
def test_few_or_certain_tokens_may_agree_by_chance(few: np.ndarray) -> None:
    refuse_copy(few, few.copy(), ROW, "")


def test_other_widths_and_dtypes_are_for_others_to_judge() -> None:
    refuse_copy(LOGPROBS, LOGPROBS[:39], ROW, "")
    refuse_copy(LOGPROBS, LOGPROBS.astype(np.float64), ROW, "")
