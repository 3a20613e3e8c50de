from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest
import zarr

from xcfg.cube import staging, writer
from xcfg.cube.reader import open_cube
from xcfg.cube.writer import commit, rebuild
from xcfg.errors import ArtifactError, EnvironmentFault


def test_a_full_disk_leaves_the_former_cube(tmp_path, build, small, monkeypatch):
    path = tmp_path / "cube.zarr"
    outcomes = build.all_passed(small)
    commit(path, small, outcomes[:4], build.attributes)
    before = build.hashes(path, measured=True)
    written = 0

    original = zarr.storage.LocalStore.set

    async def full(self, key, value):
        nonlocal written
        written += 1
        if written > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        await original(self, key, value)

    monkeypatch.setattr(zarr.storage.LocalStore, "set", full)
    with pytest.raises(EnvironmentFault, match="no space left"):
        commit(path, small, outcomes, build.attributes)
    monkeypatch.undo()
    assert build.hashes(path, measured=True) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["cube.zarr"]


@pytest.mark.parametrize("moment", ["writing", "between the renames", "removing the former"])
def test_a_kill_leaves_a_readable_cube(tmp_path, build, small, monkeypatch, moment):
    class Killed(BaseException):
        pass

    def kill(*_args, **_kwargs):
        raise Killed

    path = tmp_path / "cube.zarr"
    outcomes = build.all_passed(small)
    commit(path, small, outcomes[:4], build.attributes)
    with monkeypatch.context() as patch:
        if moment == "writing":
            patch.setattr(writer, "write_measured", kill)
        elif moment == "removing the former":
            patch.setattr(staging, "_discard", kill)
        else:
            rename = Path.rename
            patch.setattr(Path, "rename", lambda self, to: kill() if "staging" in self.name else rename(self, to))
        patch.setattr(staging.shutil, "rmtree", lambda *_args, **_kwargs: None)  # a killed process tidies nothing
        with pytest.raises(Killed):
            commit(path, small, outcomes, build.attributes)

    assert path.exists() is (moment != "between the renames")
    run = sum(status != "not_run" for status in open_cube(path).statuses().values())
    assert run == (12 if moment == "removing the former" else 4)

    # only what is missing: the rest must come out of the former cube
    commit(path, small, outcomes[4:], build.attributes)
    assert [entry.name for entry in tmp_path.iterdir()] == ["cube.zarr"]
    rebuild(tmp_path / "other.zarr", small, outcomes, build.attributes)
    assert build.hashes(path) == build.hashes(tmp_path / "other.zarr")


def test_a_damaged_cube_is_refused_and_mended_by_a_rebuild(tmp_path, build, small):
    path = tmp_path / "cube.zarr"
    outcomes = build.all_passed(small)
    commit(path, small, outcomes, build.attributes)
    good = build.hashes(path)
    chunk = path / "metrics" / "c.0.0.0.0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)

    with pytest.raises(ArtifactError, match="damaged"):
        open_cube(path).values(small.cases[0].id)
    with pytest.raises(ArtifactError, match="damaged"):
        commit(path, small, outcomes, build.attributes)
    rebuild(path, small, outcomes, build.attributes)
    assert build.hashes(path) == good


def test_a_missing_or_foreign_cube_is_refused(tmp_path, build, small):
    path = tmp_path / "cube.zarr"
    with pytest.raises(ArtifactError, match="no result cube"):
        open_cube(path)
    zarr.open_group(path, mode="w", zarr_format=3, attributes={"schema": "xcfg.cube/99"})
    with pytest.raises(ArtifactError, match=r"xcfg\.cube/99"):
        open_cube(path)
    with pytest.raises(ArtifactError, match=r"xcfg\.cube/99"):
        commit(path, small, [], build.attributes)
    (path / "zarr.json").write_text("{")
    with pytest.raises(ArtifactError, match="unreadable"):
        open_cube(path)
    shutil.rmtree(path)
    commit(path, small, [], build.attributes)
    shutil.rmtree(path / "case_cell")
    with pytest.raises(ArtifactError, match="unreadable"):
        open_cube(path).statuses()
    rebuild(path, small, build.all_passed(small), build.attributes)
    assert set(open_cube(path).statuses().values()) == {"pass", "fail"}
