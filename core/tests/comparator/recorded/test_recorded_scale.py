"""A long response and many records: more than a block holds, and than the index is handed at once."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.model.recorded import Record
from xcfg.model.status import Status


def test_a_response_of_a_million_tokens(judge):
    random = np.random.default_rng(0)
    ids, rollout = random.integers(0, 1 << 17, 1_000_000), -random.random(1_000_000, dtype=np.float32) - 1
    train = rollout.copy()
    train[777_777] -= 1
    versions = ("3",) * len(ids)
    sides = [
        [Record(id="long", response_ids=ids, logprobs=values, dtype="float32", weight_versions=versions)]
        for values in (rollout, train)
    ]
    result = judge(*sides)
    assert (result.status, result.active_tokens) == (Status.FAIL, 1_000_000)
    assert (result.worst.position, result.worst.token) == (777_777, ids[777_777])
    assert result.metrics["mean_abs_dlogp"] == pytest.approx(1e-6)


def test_many_tiny_records(judge, record):
    """More than SQLite is handed at once, and than a block holds, joined from opposite orders."""
    count = 3500
    ids = np.arange(12)
    rollout = [
        Record(id=f"{at:05}", response_ids=ids, logprobs=np.full(12, -1.0), dtype="float32") for at in range(count)
    ]
    training = [
        Record(id=f"{at:05}", response_ids=ids, logprobs=np.full(12, -1.0 - (at == 3141)), dtype="float32")
        for at in reversed(range(count))
    ]
    result = judge(rollout, training)
    assert (result.active_tokens, result.worst.sequence) == (12 * count, "03141")
    assert result.metrics["mean_abs_dlogp"] == pytest.approx(1 / count)
    assert result.metrics["sequence_mean_abs_max"] == 1.0
