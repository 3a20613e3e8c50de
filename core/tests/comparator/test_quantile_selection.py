"""Order statistics from counted leading bits: exact against a sort, also where many values share their bits."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.comparator import quantile
from xcfg.comparator.exchange import ALONE
from xcfg.comparator.quantile import BITS, Histogram, Selection, Window, percentile, percentile_ranks

BIN = 1 << (64 - BITS)
"""Float64 bit patterns that share their 16 leading bits."""


def patterns(*bits):
    """The float64 values of these bit patterns."""
    return np.array(bits, dtype=np.uint64).view(np.float64)


def counted(values, shift=64 - BITS, prefix=0):
    histogram = Histogram(shift, prefix)
    histogram.add(values)
    return histogram


def select(values, ranks, reads=None):
    """The values of some ranks; ``reads`` counts how often all values were read again."""

    def again():
        if reads is not None:
            reads.append(1)
        return iter([values[:3], values[3:]])

    chosen = Selection(counted(values), ranks, again, ALONE)
    for piece in (values[3:], values[:3]):
        chosen.add(piece)
    return chosen


def test_a_value_is_counted_in_the_bin_of_its_leading_bits():
    values = patterns(0, BIN - 1, 5 * BIN, 5 * BIN + 7, 9 * BIN)
    histogram = counted(values)
    histogram.add(patterns(5 * BIN))
    histogram.add(np.zeros(0))
    counts = histogram.total(ALONE)
    assert counts.dtype == np.int64 and len(counts) == 1 << BITS
    assert {int(place): int(counts[place]) for place in np.flatnonzero(counts)} == {0: 2, 5: 3, 9: 1}


def test_a_finer_count_takes_only_values_of_its_prefix():
    fine = BIN >> BITS
    values = patterns(5 * BIN, 5 * BIN + 2 * fine, 5 * BIN + 2 * fine + 1, 6 * BIN, 4 * BIN + 2 * fine)
    counts = counted(values, 64 - 2 * BITS, 5).total(ALONE)
    assert {int(place): int(counts[place]) for place in np.flatnonzero(counts)} == {0: 1, 2: 2}


def test_the_largest_finite_float_and_infinity_have_bins():
    values = np.array([np.finfo(np.float64).max, np.inf])
    assert int(counted(values).total(ALONE).sum()) == 2
    assert select(values, [0, 1]).result() == {0: np.finfo(np.float64).max, 1: np.inf}


@pytest.mark.parametrize("limit", [0, 1, 2, 4, 6, 7, 1 << 21])
def test_every_rank_is_the_value_that_a_sort_puts_there(monkeypatch, limit):
    monkeypatch.setattr(quantile, "LIMIT", limit)
    fine, finest = BIN >> BITS, BIN >> 2 * BITS
    base = 0x3FE0 * BIN
    near = [base, base + 1, base + finest, base + 3 * finest + 2, base + fine, base + fine + 1, base + 1]
    values = np.concatenate([patterns(*near, *near[:2]), [0.0, 0.0, 1e-300, 2.0, 7.5, 1e300]])
    values = np.random.default_rng(1).permutation(values)
    ordered = np.sort(values)
    ranks = list(range(len(values)))
    assert select(values, ranks).result() == dict(zip(ranks, ordered.tolist(), strict=True))
    for rank in ranks:
        assert select(values, [rank]).result() == {rank: ordered[rank]}


def test_values_are_read_again_only_for_a_bin_above_the_limit(monkeypatch):
    monkeypatch.setattr(quantile, "LIMIT", 3)
    reads = []
    few = patterns(BIN, BIN + 1, BIN + 2, 8 * BIN)
    assert select(few, [0, 1, 3], reads).result() == {0: few[0], 1: few[1], 3: few[3]}
    assert not reads
    many = patterns(BIN, BIN + 1, BIN + 2, BIN + 3, 8 * BIN)
    select(many, [4], reads)
    assert not reads
    assert select(many, [0, 1, 2], reads).result() == {0: many[0], 1: many[1], 2: many[2]}
    assert len(reads) == 3  # bits 16 to 31, 32 to 47, 48 to 63: then each value is a bin of its own


def test_only_values_of_a_chosen_window_are_kept():
    values = patterns(BIN, 2 * BIN, 2 * BIN + 9, 3 * BIN)
    chosen = select(values, [1])
    (window,) = chosen._windows
    assert window == Window(prefix=2, shift=64 - BITS, below=1, inside=2, ranks=(1,))
    assert sorted(np.concatenate(chosen._kept[0]).tolist()) == values[1:3].tolist()


@pytest.mark.parametrize(
    ("count", "percents", "ranks"),
    [(1, [95.0, 99.0], [0]), (2, [50.0], [0, 1]), (101, [95.0, 99.0], [95, 99]), (21, [95.0, 99.0], [19, 20])],
)
def test_the_ranks_of_percentiles(count, percents, ranks):
    assert percentile_ranks(count, percents) == ranks


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20, 100, 101])
@pytest.mark.parametrize("percent", [0.0, 5.0, 50.0, 95.0, 99.0, 100.0])
def test_percentiles_are_those_of_numpy_to_the_bit(count, percent):
    values = np.random.default_rng(count).exponential(1.0, count)
    ordered = np.sort(values).tolist()
    known = {rank: ordered[rank] for rank in percentile_ranks(count, [percent])}
    assert percentile(count, percent, known) == np.percentile(values, percent, method="linear")


def test_half_way_between_two_values_rounds_as_numpy_does():
    for seed in range(200):
        low, high = np.sort(np.random.default_rng(seed).random(2) * [1e-3, 1.0]).tolist()
        assert percentile(2, 50.0, {0: low, 1: high}) == np.percentile([low, high], 50.0, method="linear")
