"""``xcfg cube compact``: leftovers go, results stay."""

from __future__ import annotations

import json


def litter(folder):
    """What killed executions leave; returns the paths."""
    side = sorted(path for path in folder.glob("sides/*"))[0]
    cut = side / "attempt-0002"
    (cut / "logs").mkdir(parents=True)
    (cut / "identity.json").write_text("{}")
    staging = folder / "launches/0099/staging"
    staging.mkdir(parents=True)
    (staging / "rank-00000.safetensors").write_bytes(b"0" * 1000)
    half = folder / "cube.zarr/metrics/c.0.0.123.partial"
    half.write_bytes(b"0")
    tokens = folder / ".tokens.partial"
    tokens.mkdir()
    commit = folder / ".cube.zarr.staging"
    commit.mkdir()
    copy = side / ".copy-attempt-0003.abcd"
    copy.mkdir()
    return {path.relative_to(folder).as_posix() for path in (cut, staging, half, tokens, commit, copy)}


def keep(folder):
    """A recorded failure whose evidence looks like a leftover, and a damaged sealed attempt."""
    side = sorted(path for path in folder.glob("sides/*"))[1]
    failed = side / "attempt-0000"
    (failed / "ranks").mkdir(parents=True)
    failure = {"status": "scorer_error", "reason": "died", "logs": []}
    (failed / "failure.json").write_text(json.dumps({"schema": "xcfg.attempt/1", "failure": failure, "launch": "0001"}))
    (failed / "ranks/x.partial").write_text("evidence")
    return failed


def test_leftovers_go_and_results_stay(copied, xcfg, content_of):
    folder = copied("batch")
    before = content_of(folder)
    failed, wanted = keep(folder), litter(folder)
    listed = xcfg("cube", "compact", folder, "--dry-run", "--json").document
    assert {item["path"] for item in listed["removed"]} == wanted
    assert {item["path"]: item["bytes"] for item in listed["removed"]}["launches/0099/staging"] == 1000
    assert all((folder / name).exists() for name in wanted)

    done = xcfg("cube", "compact", folder, "--json")
    assert done.code == 0, done.err
    assert {item["path"] for item in done.document["removed"]} == wanted
    assert not any((folder / name).exists() for name in wanted)
    assert (failed / "failure.json").exists() and (failed / "ranks/x.partial").read_text() == "evidence"
    after = content_of(folder)
    kept = {name for name in before if not name.startswith(("cube.zarr/measured", "checkpoints"))}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert xcfg("cube", "verify", folder).code == 0
    assert xcfg("cube", "compact", folder, "--json").document["removed"] == []


def test_the_cube_of_a_grown_folder_is_packed_anew(finished, copied, xcfg):
    """Appended cases start at chunk boundaries of the token arrays; written from scratch they lie side by side."""
    import zarr

    folder = copied("dtype")
    xcfg("cube", "rebuild", folder)
    more = finished / "more.json"
    found = json.loads((finished / "dtype.json").read_text())
    found["axes"]["rollout.dtype"].append("float16")
    more.write_text(json.dumps(found))
    assert xcfg("-q", "run", more, "--allow-fake", "--out", folder).code in (0, 1)
    rows = xcfg("cube", "query", folder, "--json").document["rows"]
    assert zarr.open_group(folder / "cube.zarr", mode="r")["token_start"][:].tolist() == [0, 24, 65536]
    assert xcfg("cube", "compact", folder).code == 0
    assert zarr.open_group(folder / "cube.zarr", mode="r")["token_start"][:].tolist() == [0, 24, 48]
    assert xcfg("cube", "query", folder, "--json").document["rows"] == rows
    assert xcfg("cube", "verify", folder).code == 0


def test_a_folder_that_is_no_run_or_is_in_use_is_refused(copied, tmp_path, xcfg):
    from xcfg.runner.lock import locked

    assert xcfg("cube", "compact", tmp_path).code == 2
    folder = copied("batch")
    wanted = litter(folder)
    with locked(folder):
        import subprocess
        import sys

        done = subprocess.run([sys.executable, "-m", "xcfg.cli", "cube", "compact", str(folder)], capture_output=True)
    assert done.returncode == 2 and b"another run" in done.stderr
    assert all((folder / name).exists() for name in wanted)
