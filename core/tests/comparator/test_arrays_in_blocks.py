"""Pairs read in place from flat arrays: blocks, rows by number, and the census of values that may not be compared."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xcfg.comparator import blocks
from xcfg.comparator.arrays import UNKNOWN_TOKEN, ArrayPairs, census
from xcfg.comparator.blocks import TokenPairs
from xcfg.comparator.values import POSITIVE_ROUNDING
from xcfg.model.outcome import PairedTokens

LENGTHS = [3, 0, 2, 4, 0, 5, 1]
MASKS = [[1, 0, 1], [], [0, 0], [1, 1, 1, 1], [], [0, 1, 1, 0, 1], [1]]


def arrays(*, masked, dtype=np.float32, **changes):
    """Seven rows, two of them empty and one all masked; the value of a token tells its place in the flat array."""
    total = sum(LENGTHS)
    fields = {
        "rollout": -np.arange(total, dtype=dtype),
        "train": -np.arange(total, dtype=dtype) - 0.5,
        "lengths": np.array(LENGTHS),
        "mask": np.array([on for row in MASKS for on in row], dtype=bool) if masked else None,
        "tokens": np.arange(total) + 100,
        "names": tuple("abcdefg"),
        "rank": 3,
    }
    return ArrayPairs(**{**fields, **changes})


def expected(masked):
    """(row, position, place) of every active token, row by row."""
    found, place = [], 0
    for row, length in enumerate(LENGTHS):
        for position in range(length):
            if not masked or MASKS[row][position]:
                found.append((row, position, place))
            place += 1
    return found


def seen(pairs):
    """(row, position, rollout, train) of every token of the blocks, whose rows must fill them."""
    found = []
    for block in pairs.blocks():
        assert (block.lengths > 0).all()
        assert int(block.lengths.sum()) == len(block.position) == len(block.rollout) == len(block.train)
        for row, start, length in zip(block.rows, block.starts, block.lengths, strict=True):
            inside = slice(int(start), int(start + length))
            columns = (block.position[inside], block.rollout[inside], block.train[inside])
            found += [(int(row), *map(float, token)) for token in zip(*columns, strict=True)]
    return found


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("size", [1, 2, 5, 1 << 15])
def test_blocks_hold_every_active_token_once_in_order(monkeypatch, masked, size):
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    tokens = expected(masked)
    assert seen(arrays(masked=masked)) == [(row, position, -place, -place - 0.5) for row, position, place in tokens]


@pytest.mark.parametrize("masked", [False, True])
def test_a_row_is_found_by_its_number(masked):
    pairs = arrays(masked=masked)
    for number, name in enumerate("abcdefg"):
        mine = [(position, place) for row, position, place in expected(masked) if row == number]
        found = pairs.row(number)
        assert (found.sequence, found.rollout_rank, found.train_rank) == (name, 3, 3)
        assert found.position.tolist() == [position for position, _ in mine]
        assert found.token.tolist() == [100 + place for _, place in mine]
        assert found.rollout.tolist() == [-place for _, place in mine]
        assert found.train.tolist() == [-place - 0.5 for _, place in mine]


def test_without_names_and_token_ids_a_row_is_its_number_and_its_tokens_are_unknown():
    pairs = arrays(masked=True, names=None, tokens=None)
    assert (pairs.name(5), pairs.row(5).sequence) == ("5", "5")
    assert pairs.row(5).token.tolist() == [UNKNOWN_TOKEN] * 3 == [-1] * 3
    assert arrays(masked=True).name(5) == "f"


def test_no_rows_and_rows_without_tokens_have_no_block():
    assert not seen(arrays(masked=False, lengths=np.zeros(0, int), rollout=np.zeros(0), train=np.zeros(0)))
    assert not seen(arrays(masked=True, mask=np.zeros(sum(LENGTHS), bool)))


@pytest.mark.parametrize("size", [2, 1 << 15])
def test_blocks_of_paired_tokens_are_those_of_arrays(monkeypatch, size):
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    masked = expected(masked=True)
    places = np.array([place for _, _, place in masked])
    rows = [0, 3, 5, 6]
    tokens = PairedTokens(
        sequence_ids="abcdefg",
        row_sequence=np.array(rows),
        row_length=np.array([2, 4, 3, 1]),
        row_rollout_rank=np.array([1, 0, 2, 0]),
        row_train_rank=np.array([0, 4, 0, 1]),
        position=np.array([position for _, position, _ in masked]),
        token=places + 100,
        rollout_logp=-places.astype(np.float32),
        train_logp=-places.astype(np.float32) - np.float32(0.5),
    )
    pairs = TokenPairs(tokens)
    numbered = [(rows.index(row), *token) for row, *token in seen(arrays(masked=True))]
    assert seen(pairs) == numbered
    for number, row in enumerate(rows):
        mine, theirs = pairs.row(number), arrays(masked=True).row(row)
        assert (mine.sequence, mine.rollout_rank, mine.train_rank) == (
            "abcdefg"[row],
            *[(1, 0), (0, 4), (2, 0), (0, 1)][number],
        )
        for name in ("position", "token", "rollout", "train"):
            assert getattr(mine, name).tolist() == getattr(theirs, name).tolist()


def counted(pairs):
    found = census(pairs)
    return found.active, found.not_finite, found.positive


@pytest.mark.parametrize("size", [3, 1 << 15])
def test_a_census_counts_what_no_comparison_may_contain_and_names_the_first(monkeypatch, size):
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    clean = arrays(masked=True)
    assert (counted(clean), census(clean).first) == ((10, 0, 0), "")
    train = clean.train.copy()
    train[5], train[6], train[10], train[12] = 0.25, math.nan, -math.inf, math.inf  # place 12 is masked out
    found = arrays(masked=True, train=train)
    assert (counted(found), census(found).first) == (
        (10, 2, 1),
        "training 0.25 in sequence 'd' at position 0 on rank 3",
    )
    rollout = clean.rollout.copy()
    rollout[11], rollout[14] = math.inf, 1.0
    found = arrays(masked=True, rollout=rollout)  # a positive one is named before one that is not finite
    assert (counted(found), census(found).first) == ((10, 1, 1), "rollout 1.0 in sequence 'g' at position 0 on rank 3")
    rollout[14] = -1.0
    found = arrays(masked=True, rollout=rollout)
    assert (counted(found), census(found).first) == ((10, 1, 0), "rollout inf in sequence 'f' at position 2 on rank 3")


def test_a_positive_logprob_within_rounding_is_no_fault():
    edge = arrays(masked=False, dtype=np.float64).train.copy()
    edge[0] = POSITIVE_ROUNDING
    assert counted(arrays(masked=False, train=edge)) == (15, 0, 0)
    edge[0] = np.nextafter(POSITIVE_ROUNDING, 1.0)
    assert counted(arrays(masked=False, train=edge)) == (15, 0, 1)
