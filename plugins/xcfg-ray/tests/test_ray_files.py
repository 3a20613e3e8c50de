"""Files carried from a machine to the coordinator."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xcfg.errors import EnvironmentFault
from xcfg_ray.carried import Part, Receiver, Sent
from xcfg_ray.changes import PIECE, Changes


def tick_after(changes: Changes, path: Path) -> None:
    """Wait until the file system's clock has moved beyond a file's time."""
    probe = changes.beat.with_name("probe")
    while True:
        probe.write_bytes(b"x")
        os.utime(probe)
        if probe.stat().st_mtime_ns > path.stat().st_mtime_ns:
            return


@pytest.fixture
def there(tmp_path: Path) -> Changes:
    folder = tmp_path / "scratch/launch"
    folder.mkdir(parents=True)
    return Changes(folder=folder, beat=tmp_path / "scratch/beat")


def write(changes: Changes, name: str, data: bytes) -> Path:
    """In one step, as ranks write."""
    path = changes.folder / name
    path.parent.mkdir(exist_ok=True)
    path.with_name(f".{path.name}.partial").write_bytes(data)
    path.with_name(f".{path.name}.partial").replace(path)
    tick_after(changes, path)
    return path


def sent(changes: Changes, **options: bool) -> list[tuple[str, int, bytes]]:
    return [(part.path, part.offset, part.data) for part in changes.batch(**options)]


def test_new_and_replaced_files_come_in_the_order_of_their_writing(there: Changes) -> None:
    write(there, "step/tensor", b"123")
    write(there, "phase.txt", b"open")
    write(there, "a-record.json", b"{}")
    assert [name for name, *_ in sent(there)] == ["step/tensor", "phase.txt", "a-record.json"]
    assert sent(there) == []
    write(there, "phase.txt", b"score")
    assert sent(there) == [("phase.txt", 0, b"score")]


def test_a_file_that_grew_is_no_log_for_that(there: Changes) -> None:
    path = write(there, "phase.txt", b"open")
    list(there.batch())
    with path.open("r+b") as stream:  # the same inode, as a reused one is
        stream.write(b"score")
    tick_after(there, path)
    assert sent(there) == [("phase.txt", 0, b"score")]


def test_what_is_written_during_the_search_waits(there: Changes) -> None:
    write(there, "first", b"1")
    batch = there.batch()
    (there.folder / "hidden").mkdir()
    found = [part.path for part in batch]
    assert found == ["first"]
    path = there.folder / "second"
    path.write_bytes(b"2")
    ahead = there.beat.stat().st_mtime_ns + 10**12
    os.utime(path, ns=(ahead, ahead))
    assert sent(there) == []
    assert sent(there, everything=True) == [("second", 0, b"2")]


def test_logs_come_as_what_was_added(there: Changes) -> None:
    path = write(there, "out.log", b"one\n")
    assert sent(there) == [("out.log", 0, b"one\n")]
    with path.open("ab") as stream:
        stream.write(b"two\n")
    assert sent(there) == [("out.log", 4, b"two\n")]
    assert sent(there) == []


def test_a_log_that_is_filled_does_not_hold_up_the_rest(there: Changes) -> None:
    path = write(there, "out.log", b"x" * (2 * PIECE + 1))
    assert [len(data) for _, _, data in sent(there)] == [PIECE]
    assert [len(data) for _, _, data in sent(there)] == [PIECE]
    assert [len(data) for _, _, data in sent(there)] == [1]
    with path.open("ab") as stream:
        stream.write(b"y" * (PIECE + 1))
    assert [len(data) for _, _, data in sent(there, everything=True)] == [PIECE, 1]


def test_hidden_files_and_links_stay(there: Changes) -> None:
    (there.folder / ".x.partial").write_bytes(b"half")
    (there.folder / "link").symlink_to("/etc/hostname")
    assert sent(there, everything=True) == []


def test_large_files_arrive_in_pieces_and_appear_with_their_batch(there: Changes, tmp_path: Path) -> None:
    data = bytes(range(256)) * (PIECE // 256) + b"end"
    write(there, "tensor", data)
    write(there, "record", b"{}")
    here = Receiver(folder=tmp_path / "here")
    parts = list(there.batch())
    assert [(part.path, part.last) for part in parts] == [("tensor", False), ("tensor", True), ("record", True)]
    for part in parts:
        assert not here.take(Sent(parts=(part,), whole=False))
        assert not [path.name for path in (tmp_path / "here").iterdir() if not path.name.startswith(".")]
    assert here.take(Sent(parts=(), whole=True))
    assert {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()} == {"tensor": data, "record": b"{}"}


def test_a_log_is_added_to(tmp_path: Path) -> None:
    here = Receiver(folder=tmp_path)
    for offset, data in ((0, b"one\n"), (4, b"two\n")):
        here.take(Sent(parts=(Part(path="logs/out.log", offset=offset, data=data, last=True, grows=True),), whole=True))
    assert (tmp_path / "logs/out.log").read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/tmp/out"])
def test_a_name_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    part = Part(path=name, offset=0, data=b"", last=True, grows=False)
    with pytest.raises(EnvironmentFault, match="sent a file"):
        Receiver(folder=tmp_path / "here").take(Sent(parts=(part,), whole=True))


def test_no_room_is_said(tmp_path: Path) -> None:
    (tmp_path / "step").write_bytes(b"a file where a folder should be")
    part = Part(path="step/tensor", offset=0, data=b"1", last=True, grows=False)
    with pytest.raises(EnvironmentFault, match="step"):
        Receiver(folder=tmp_path).take(Sent(parts=(part,), whole=True))
