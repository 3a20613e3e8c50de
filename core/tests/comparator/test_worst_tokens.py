"""The tokens of largest abs(d) with their neighbours, in any number of blocks."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.comparator import blocks
from xcfg.comparator.arrays import ArrayPairs
from xcfg.comparator.worst import AROUND, worst_tokens

D = [[0.5, 0.0, 2.0], [0.25], [0.0, -2.0, 0.125, 3.0, 0.0, 0.0, 0.0, 0.0, -0.5, 0.75]]


def pairs(mask=None):
    flat = np.array([value for row in D for value in row])
    return ArrayPairs(
        rollout=np.full(len(flat), -5.0),
        train=-5.0 + flat,
        lengths=np.array([len(row) for row in D]),
        mask=mask,
        tokens=np.arange(len(flat)) + 100,
        names=("a", "b", "c"),
        rank=2,
    )


def places(found):
    return [(item.token.sequence, item.token.position) for item in found]


@pytest.mark.parametrize("size", [1, 4, 1 << 15])
def test_the_largest_come_first_and_ties_in_order_of_place(monkeypatch, size):
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    order = [("c", 3), ("a", 2), ("c", 1), ("c", 9), ("a", 0), ("c", 8), ("b", 0), ("c", 2), ("a", 1), ("c", 0)]
    for count in (0, 1, 2, 3, 6, 10):
        assert places(worst_tokens(pairs(), count)) == order[:count]
    assert len(worst_tokens(pairs(), 99)) == 14


def test_a_token_stands_among_three_neighbours_on_each_side():
    assert AROUND == 3
    top, second, third = worst_tokens(pairs(), 3)
    token = top.token
    assert (token.sequence, token.position, token.token) == ("c", 3, 107)
    assert (token.rollout_logp, token.train_logp, token.rollout_rank, token.train_rank) == (-5.0, -2.0, 2, 2)
    assert [item.position for item in top.around] == [0, 1, 2, 3, 4, 5, 6]
    assert [item.token for item in top.around] == [104, 105, 106, 107, 108, 109, 110]
    assert top.around[3] == token
    assert [item.position for item in second.around] == [0, 1, 2]
    assert [item.position for item in third.around] == [0, 1, 2, 3, 4]
    assert [item.position for item in worst_tokens(pairs(), 4)[3].around] == [6, 7, 8, 9]


def test_neighbours_are_active_tokens():
    mask = np.ones(14, bool)
    mask[[5, 8]] = False  # positions 1 and 4 of the last row
    (top,) = worst_tokens(pairs(mask), 1)
    assert [item.position for item in top.around] == [0, 2, 3, 5, 6, 7]
    assert top.token.position == 3
