"""Where exactly the off-by-one detector begins to speak: its limits met to the bit, in any number of blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xcfg.comparator import blocks
from xcfg.comparator.arrays import ArrayPairs
from xcfg.comparator.shift import detect_shift


def pairs(rollout, train, mask=None):
    """Rows as pairs in memory, float64."""
    return ArrayPairs(
        rollout=np.concatenate(rollout).astype(np.float64),
        train=np.concatenate(train).astype(np.float64),
        lengths=np.array([len(row) for row in rollout]),
        mask=mask,
        tokens=None,
        names=None,
        rank=0,
    )


def language_like(lengths, seed=0):
    generator = np.random.default_rng(seed)
    return [-generator.exponential(2.5, length) for length in lengths]


def ladder(length, step=2.25, error=0.25, shift=1):
    """A row that falls by ``step`` a token, and one that is it moved by ``shift`` and off by ``error``.

    Interior tokens differ by step + error in place and by error moved: 2.5 and 0.25 nats, a factor of exactly 10.
    """
    place = np.arange(length)
    return -step * place, -step * (place - shift) + math.copysign(error, shift)


@pytest.mark.parametrize("lengths", [[40], [5] * 8])
@pytest.mark.parametrize("moved", [0, 1])
def test_a_sum_beyond_the_float_range_explains_nothing(lengths, moved):
    """Of whole sequences or of all tokens, whether or not the moved side would have fitted."""
    rollout = language_like(lengths)
    for row in rollout:
        row[1 : len(row) // 2 + 1] = -1.7e308
    train = [np.roll(row, 1) if moved else row * 0.5 - 0.25 for row in rollout]
    with np.errstate(over="raise", invalid="raise"):
        assert detect_shift(pairs(rollout, train)) is None


@pytest.mark.parametrize("shift", [1, -1])
@pytest.mark.parametrize(("rows", "length", "explained"), [(1, 10, 1), (3, 5, 0)])
def test_a_factor_of_ten_over_eight_inner_tokens_is_enough_and_less_is_not(shift, rows, length, explained):
    exact = [ladder(length, shift=shift)] * rows
    found = detect_shift(pairs(*zip(*exact, strict=True)))
    compared = rows * (length - 2)
    assert (found.shift, found.sequences_explained, found.tokens_compared) == (shift, explained, compared)
    assert (found.mean_abs_at_0, found.mean_abs_at_shift) == (2.5, 0.25)
    worse = [ladder(length, error=0.2500001, shift=shift)] * rows
    assert detect_shift(pairs(*zip(*worse, strict=True))) is None
    shorter = [(left[:-1], right[:-1]) for left, right in exact]
    few = detect_shift(pairs(*zip(*shorter, strict=True)))
    assert few is None  # 7 tokens of one sequence, 6 of three


@pytest.mark.parametrize(("rows", "length", "explained"), [(1, 12, 1), (4, 5, 0)])
def test_a_shift_of_small_values_is_a_shift(rows, length, explained):
    small = [ladder(length, step=2.25 / 1024, error=0.25 / 1024)] * rows
    found = detect_shift(pairs(*zip(*small, strict=True)))
    assert (found.shift, found.sequences_explained) == (1, explained)
    assert detect_shift(pairs(*zip(*[ladder(length, step=0.0, error=0.0)] * rows, strict=True))) is None


@pytest.mark.parametrize("size", [1, 30, 1 << 15])
@pytest.mark.parametrize("first", [1, -1])
def test_the_shift_that_explains_more_sequences_is_named(monkeypatch, size, first):
    monkeypatch.setattr(blocks, "BLOCK_TOKENS", size)
    rollout = language_like([20, 24, 16, 20])
    train = [np.roll(rollout[0], first), np.roll(rollout[1], -first), np.roll(rollout[2], -first), rollout[3]]
    found = detect_shift(pairs(rollout, train))
    assert (found.shift, found.sequences_explained, found.sequences_compared) == (-first, 2, 4)
    assert found.tokens_compared == 22 + 14
    inner = [(np.abs(train[row] - rollout[row])[1:-1]).sum() for row in (1, 2)]
    assert found.mean_abs_at_0 == pytest.approx(sum(inner) / 36, rel=1e-12)


@pytest.mark.parametrize("first", [1, -1])
def test_of_shifts_that_explain_as_many_sequences_that_of_more_tokens_is_named(first):
    rollout = language_like([20, 24])
    train = [np.roll(rollout[0], first), np.roll(rollout[1], -first)]
    found = detect_shift(pairs(rollout, train))
    assert (found.shift, found.sequences_explained, found.tokens_compared) == (-first, 1, 22)


def test_the_end_of_one_sequence_is_no_neighbour_of_the_next():
    # the second and third rows are masked so that their positions go on where the row before stops
    rollout = language_like([4, 8, 12])
    train = [row - 0.5 for row in rollout]
    mask = np.concatenate([np.ones(4, bool), np.arange(8) >= 4, np.arange(12) >= 8])
    found = detect_shift(pairs(rollout, [np.roll(row, 1) for row in rollout], mask))
    assert found is None  # 2 inner tokens in each of three rows: 6, too few; the bounds counted in, there would be 10
    assert detect_shift(pairs(rollout, train, mask)) is None
