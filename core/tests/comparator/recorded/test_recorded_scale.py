"""Long responses, many records, ids of any kind, and a disk without room."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from xcfg.comparator.recorded import pairs, store
from xcfg.comparator.recorded.compare import Terms, compare_recorded
from xcfg.errors import EnvironmentFault
from xcfg.model.recorded import Record
from xcfg.model.status import Status

IDS = ["", "\x00", "a\x00b", "a", "a\nb", "\x1b[2J", "é", "e\u0301", "\ud800", "\U0001f600", "x" * 10_000, "x" * 9_999]


def test_ids_of_any_kind_are_kept_apart_and_named_as_they_are(judge, record):
    """Half a character (a lone surrogate) has no UTF-8: an importer may refuse it, the comparison need not."""
    for worst in IDS:
        rollout = [record(id, [-1.0]) for id in IDS]
        training = [record(id, [-1.0 - 0.25 * (id == worst)]) for id in reversed(IDS)]
        result, (token,) = judge(rollout, training, tokens=1)
        assert result.active_tokens == len(IDS)
        assert result.worst.sequence == token.token.sequence == worst


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


def no_room(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_room_for_the_index(*_):
    raise sqlite3.OperationalError("database or disk is full")


FULL = {
    "records": (store.Store, "append", no_room),
    "index": (store.Store, "_flush", no_room_for_the_index),
    "order": (store.Store, "entries", no_room_for_the_index),
    "ranks": (store.Store, "declarations", no_room_for_the_index),
    "tokens": (pairs.PairsWriter, "row", no_room),
    "names": (pairs.PairsWriter, "sequence", no_room),
    "end": (store.Store, "__exit__", no_room),
}


@pytest.mark.parametrize("name", FULL)
def test_no_room_is_the_machine_s_fault_wherever_it_is_noticed(contract, record, monkeypatch, tmp_path, name):
    owner, method, fails = FULL[name]
    monkeypatch.setattr(owner, method, fails)
    with pytest.raises(EnvironmentFault) as raised:
        compare_recorded([record()], [record()], Terms(contract=contract), tmp_path)
    (fault,) = raised.value.faults
    assert "cannot be written to disk" in fault.message
    assert (fault.where, "TMPDIR" in fault.hint) == (str(tmp_path), True)


def test_a_failure_to_read_is_not_a_full_disk(contract, record, tmp_path):
    def rows():
        yield record()
        raise PermissionError(errno.EACCES, "not yours")

    with pytest.raises(PermissionError):
        compare_recorded(rows(), [record()], Terms(contract=contract), tmp_path)


def test_progress_is_told_by_side(contract, record, tmp_path: Path):
    told = []
    sides = [[record(id) for id in "ab"], [record(id) for id in "ba"]]
    compare_recorded(*sides, Terms(contract=contract), tmp_path, lambda side, records: told.append((side, records)))
    assert told == [(0, 1), (0, 2), (1, 1), (1, 2)]
