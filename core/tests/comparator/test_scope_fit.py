"""Distance and correlation gathered piece by piece, against the standard library over all values at once."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from xcfg.comparator.scope import Fit, Scope, segments


def in_pieces(reference, candidate, sizes):
    """A fit that was shown the values in pieces of these sizes."""
    fit, start = Fit(), 0
    for size in sizes:
        fit.add(np.array(reference[start : start + size]), np.array(candidate[start : start + size]))
        start += size
    assert start == len(reference)
    return fit


@pytest.mark.parametrize("sizes", [[30], [1, 29], [1] * 30, [7, 13, 10]])
@pytest.mark.parametrize("offset", [0.0, -7.0, -1000.0])
def test_pieces_give_what_all_values_together_give(sizes, offset):
    generator = np.random.default_rng(5)
    reference = offset + 0.01 * generator.normal(size=30)
    candidate = offset + 0.5 * (reference - offset) + 0.01 * generator.normal(size=30)
    fit = in_pieces(reference, candidate, sizes)
    apart = [abs(c - r) for r, c in zip(reference.tolist(), candidate.tolist(), strict=True)]
    assert fit.total == pytest.approx(math.fsum(apart), rel=1e-12)
    assert fit.largest == max(apart)
    expected = statistics.correlation(reference.tolist(), candidate.tolist())
    assert fit.correlation() == pytest.approx(expected, rel=1e-7)  # 1000 nats against 0.01 cost 5 of 16 digits


@pytest.mark.parametrize("slope", [2.5, -2.5])
def test_a_coefficient_never_leaves_its_range(slope):
    for seed in range(100):
        reference = np.random.default_rng(seed).normal(size=17)
        found = in_pieces(reference, slope * reference + 0.1, [17]).correlation()
        assert -1.0 <= found <= 1.0
        assert found == pytest.approx(math.copysign(1.0, slope), rel=1e-12)


@pytest.mark.parametrize("size", range(2, 40))
def test_a_constant_has_no_correlation_whatever_rounding_leaves_of_its_spread(size):
    moving = np.random.default_rng(size).normal(size=size)
    still = np.full(size, -0.1)
    for sizes in ([size], [1, size - 1]):
        assert in_pieces(moving, still, sizes).correlation() is None
        assert in_pieces(still, moving, sizes).correlation() is None


def test_values_too_close_for_a_square_have_no_correlation():
    assert in_pieces([0.0, 1e-200], [0.0, 1.0], [2]).correlation() is None


@pytest.mark.parametrize("scale", [1e200, -1e200, 1.7e308 / 3])
def test_values_whose_squares_are_beyond_the_float_range_have_no_correlation(scale):
    ladder = [0.0, scale, 2.0 * scale, 3.0 * scale]
    for pair in ((ladder, ladder), ([0.0, 1.0, 2.0, 3.0], ladder), (ladder, [0.0, 1.0, 2.0, 3.0])):
        assert in_pieces(*pair, [4]).correlation() is None
    balanced = [0.0, -scale, -2.0 * scale, 3.0 * scale]  # no product of its sum: that of squares is infinite alone
    assert in_pieces([0.0, 1.0, 2.0, 3.0], balanced, [4]).correlation() is None
    assert in_pieces(ladder, ladder, [4]).total == 0.0


def test_sums_beyond_the_float_range_are_told_by_their_value_and_no_warning():
    far = [1.7e308, 1.7e308, -1.7e308, -1.7e308] * 4
    with np.errstate(over="raise", invalid="raise"):
        fit = in_pieces([0.0] * 16, far, [16])
    assert (fit.total, fit.largest, fit.correlation()) == (math.inf, 1.7e308, None)


def test_a_scope_counts_its_tokens_and_keeps_both_candidates():
    scope = Scope()
    scope.add(np.array([0.0, 1.0]), np.array([0.5, 1.0]), np.array([3.0, 1.0]))
    scope.add(np.array([2.0]), np.array([2.25]), np.array([2.0]))
    assert scope.count == 3
    assert (scope.plain.total, scope.plain.largest) == (0.75, 0.5)
    assert (scope.moved.total, scope.moved.largest) == (3.0, 3.0)


@pytest.mark.parametrize(
    ("labels", "starts", "lengths"),
    [([4], [0], [1]), ([4, 4, 4], [0], [3]), ([1, 2, 2, 1], [0, 1, 3], [1, 2, 1])],
)
def test_runs_of_equal_labels(labels, starts, lengths):
    found = segments(np.array(labels))
    assert (found[0].tolist(), found[1].tolist()) == (starts, lengths)
