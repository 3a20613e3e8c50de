"""What may depend on the order of rows: with sequence ids nothing, without them the rounding of sums and names."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg import compare_logprobs
from xcfg.model.result import METRIC_NAMES

NAMES = ["b", "a10", "a9", "é", "", "\U0001f600", "z"]


def shuffled(seed, *lists):
    order = np.random.default_rng(seed).permutation(len(lists[0]))
    return [[items[place] for place in order] for items in lists]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("block", [16, 1 << 15])
def test_with_ids_no_bit_depends_on_the_order_of_rows(monkeypatch, contract, ragged, seed, block):
    monkeypatch.setattr("xcfg.comparator.blocks.BLOCK_TOKENS", block)
    rows = ragged(seed=1, drift=0.5)
    tokens = [np.arange(len(row)) + 100 for row in rows[0]]

    def judge(rollout, training, masks, tokens, names):
        options = {"token_ids": tokens, "sequence_ids": names, "dtype": "bf16", "contract": contract}
        return compare_logprobs(rollout, training, mask=masks, **options)

    expected = judge(*rows, tokens, NAMES)
    assert len(expected.metrics) == len(METRIC_NAMES)
    assert judge(*shuffled(seed, *rows, tokens, NAMES)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_without_ids_all_but_the_rounding_of_sums_is_kept(contract, oracle, same, ragged, seed):
    rollout, training, masks = shuffled(seed, *ragged(seed=2, rows=30))
    found = compare_logprobs(rollout, training, mask=masks, dtype="bf16", contract=contract)
    same(found.metrics, oracle(*ragged(seed=2, rows=30)))


def test_of_equally_bad_tokens_the_lowest_id_in_utf_8_is_named(contract):
    rollout = np.full((4, 3), -1.0)
    training = rollout.copy()
    training[1:, 1:] -= 0.5
    tokens = np.arange(12).reshape(4, 3)
    names = np.array(["a", "é", "b", "B"])
    found = compare_logprobs(
        rollout, training, token_ids=tokens, sequence_ids=names, dtype="bf16", contract=contract, rank=3
    )
    worst = found.worst
    assert (worst.sequence, worst.position, worst.token, worst.rollout_rank, worst.train_rank) == ("B", 1, 10, 3, 3)
    assert "in sequence 'B' at position 1" in found.reason
    unnamed = compare_logprobs(rollout, training, dtype="bf16", contract=contract).worst
    assert (unnamed.sequence, unnamed.position, unnamed.token) == ("1", 1, -1)


def test_rows_without_ids_are_in_order_of_their_numbers_and_not_of_their_digits(contract):
    rollout = np.full((12, 1), -1.0)
    training = rollout.copy()
    training[[10, 2]] = -2.0
    assert compare_logprobs(rollout, training, dtype="bf16", contract=contract).worst.sequence == "2"


def test_token_ids_may_be_labels_that_ignore_what_is_inactive(contract):
    rollout, training = np.full((2, 2), -1.0), np.array([[-1.0, -9.0], [-1.0, -1.5]])
    labels = np.array([[5, -100], [6, 7]], np.int32)
    found = compare_logprobs(rollout, training, mask=labels >= 0, token_ids=labels, dtype="bf16", contract=contract)
    assert (found.worst.sequence, found.worst.position, found.worst.token) == ("1", 1, 7)
