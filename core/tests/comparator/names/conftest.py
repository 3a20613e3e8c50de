"""Pairs cut into blocks at will, and the padded arrays with a mask that a framework holds."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.comparator.blocks import Block


class CutPairs:
    """Rows of (rollout, train) logprobs in blocks of ``per_block`` rows."""

    def __init__(self, rollout, train, per_block=1, dtype=np.float64):
        self.rollout = [np.array(row, dtype=dtype) for row in rollout]
        self.train = [np.array(row, dtype=dtype) for row in train]
        self.per_block = per_block

    def blocks(self):
        for first in range(0, len(self.rollout), self.per_block):
            rollout, train = self.rollout[first : first + self.per_block], self.train[first : first + self.per_block]
            lengths = np.array([len(row) for row in rollout], dtype=np.int64)
            yield Block(
                rows=np.arange(first, first + len(lengths)),
                starts=np.cumsum(lengths) - lengths,
                lengths=lengths,
                position=np.concatenate([np.arange(length) for length in lengths]),
                rollout=np.concatenate(rollout),
                train=np.concatenate(train),
            )

    def padded(self, fill=-3.0):
        """(B, L) float64 rollout and train logprobs with ``fill`` as padding, and the (B, L) int64 mask."""
        shape = len(self.rollout), max(map(len, self.rollout))
        rollout, train, mask = np.full(shape, fill), np.full(shape, 2 * fill), np.zeros(shape, dtype=np.int64)
        for row, (left, right) in enumerate(zip(self.rollout, self.train, strict=True)):
            rollout[row, : len(left)], train[row, : len(left)], mask[row, : len(left)] = left, right, 1
        return rollout, train, mask


def make_ragged(seed, rows=37, longest=50, spread=0.3, per_block=5, dtype=np.float64):
    """Random rows of 1 to ``longest`` tokens whose sides part by about ``spread`` nats, a few tokens by 40 times it."""
    random = np.random.default_rng(seed)
    rollout, train = [], []
    for length in random.integers(1, longest + 1, rows):
        left = -random.exponential(1.0, length)
        gap = spread * random.standard_normal(length) * np.where(random.random(length) < 0.02, 40.0, 1.0)
        rollout.append(left)
        train.append(left + gap)
    return CutPairs(rollout, train, per_block, dtype)


@pytest.fixture(scope="session")
def cut():
    """The builder of pairs from rows."""
    return CutPairs


@pytest.fixture(scope="session")
def ragged():
    """The builder of random pairs."""
    return make_ragged
