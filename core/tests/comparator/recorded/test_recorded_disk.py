"""What a disk says when it is full, told as a fault of the machine; any other error is let through."""

from __future__ import annotations

import errno
import os
import sqlite3

import pytest

from xcfg.comparator.recorded import pairs, store
from xcfg.comparator.recorded.compare import Terms, compare_recorded
from xcfg.comparator.recorded.disk import full_disk
from xcfg.errors import EnvironmentFault

SAID = [
    (sqlite3.OperationalError("database or disk is full"), "database or disk is full"),
    (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
    (OSError(errno.EDQUOT, "Disk quota exceeded"), "Disk quota exceeded"),
    (OSError(errno.EFBIG, "File too large"), "File too large"),
]


@pytest.mark.parametrize(("error", "said"), SAID, ids=lambda value: value if isinstance(value, str) else "")
def test_no_room_names_the_folder_and_two_ways_out(tmp_path, error, said):
    with pytest.raises(EnvironmentFault) as raised, full_disk(tmp_path):
        raise error
    (fault,) = raised.value.faults
    assert (fault.message, fault.where) == (f"the comparison cannot be written to disk: {said}", str(tmp_path))
    assert fault.hint == "free some space, or name another folder in TMPDIR"
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "not yours"), ValueError("no"), OSError("no number")])
def test_what_is_no_full_disk_is_let_through(tmp_path, error):
    with pytest.raises(type(error)) as raised, full_disk(tmp_path):
        raise error
    assert raised.value is error


def no_room(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_room_at_the_end(store, *_):
    store._open.close()
    no_room()


def no_room_for_the_index(*_):
    raise sqlite3.OperationalError("database or disk is full")


FULL = {
    "records": (store.Store, "append", no_room),
    "index": (store.Store, "_flush", no_room_for_the_index),
    "order": (store.Store, "entries", no_room_for_the_index),
    "ranks": (store.Store, "declarations", no_room_for_the_index),
    "tokens": (pairs.PairsWriter, "row", no_room),
    "names": (pairs.PairsWriter, "sequence", no_room),
    "end": (store.Store, "__exit__", no_room_at_the_end),
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
