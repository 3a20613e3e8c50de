"""The label shift and its off-by-one detector."""

from __future__ import annotations

import pytest
import torch

from xcfg.errors import XcfgError
from xcfg_torch import scoring
from xcfg_torch.shift import LABEL_SHIFT, select
from xcfg_torch.shift_detector import check_shift, measured_shift
from xcfg_torch.testing.cases import played

SIDES = ("left", "right")


def _shifted(offset: int):
    def wrong(logits, input_ids, response):
        positions = response.nonzero()
        rows = logits[positions[:, 0], positions[:, 1] - offset]
        return rows, input_ids[positions[:, 0], positions[:, 1]]

    return wrong


def test_selects_by_hand() -> None:
    logits = torch.arange(2 * 4 * 3, dtype=torch.float32).reshape(2, 4, 3)
    ids = torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]])
    response = torch.tensor([[False, True, True, False], [False, False, False, True]])
    rows, targets = select(logits, ids, response)
    assert rows.tolist() == [[0, 1, 2], [3, 4, 5], [18, 19, 20]]
    assert targets.tolist() == [1, 2, 0]


def test_a_first_token_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="position 0"):
        select(torch.zeros(1, 2, 3), torch.zeros(1, 2, dtype=torch.int64), torch.tensor([[True, True]]))


@pytest.mark.parametrize("side", SIDES)
def test_the_shift_is_one(side) -> None:
    assert measured_shift(select, padding_side=side) == LABEL_SHIFT == 1
    assert measured_shift(_shifted(1), padding_side=side) == 1


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("offset", [0, 2])
def test_an_off_by_one_is_measured(side, offset) -> None:
    assert measured_shift(_shifted(offset), padding_side=side) == offset
    with pytest.raises(XcfgError, match=f"t - {offset}"):
        check_shift(_shifted(offset), padding_side=side)


def test_wrong_targets_are_found() -> None:
    def previous_targets(logits, input_ids, response):
        rows, _ = select(logits, input_ids, response)
        return rows, select(logits, input_ids.roll(1, dims=1), response)[1]

    assert measured_shift(previous_targets, padding_side="right") == -1


def test_a_scorer_that_is_off_by_one_refuses_to_score(checkpoint, batch, monkeypatch) -> None:
    monkeypatch.setattr(scoring, "select", _shifted(0))
    with pytest.raises(XcfgError, match="label shift"):
        played(checkpoint, batch)
