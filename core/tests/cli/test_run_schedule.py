"""``xcfg run --dry-run``: the schedule, and that nothing is written for it."""

import shutil

import pytest

AXES = {"rollout.dtype": ["bfloat16", "float32"], "batch.size": [8, 1]}


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def dry(xcfg, experiment, *extra):
    done = xcfg("run", experiment, "--allow-fake", "--out", experiment.parent / "out", "--dry-run", "--json", *extra)
    assert done.code == 0, done.err + done.out
    return done.document


@pytest.fixture
def grid(write):
    return write(axes=AXES, cases=[], slices={})


def test_a_fresh_folder(xcfg, grid):
    document = dry(xcfg, grid, "--jobs", 1)
    assert document["schema"] == "xcfg.plan/1" and len(document["cases"]) == 3
    schedule = document["schedule"]
    # production samples and scores batch sizes 8 and 1; training likewise; float32 is another rollout engine
    rows = [
        (engine["role"], engine["samples"], len(engine["sides"]), engine["cases"], engine["reused"], engine["built"])
        for engine in schedule["engines"]
    ]
    assert rows == [
        ("rollout", True, 2, 2, 0, True),
        ("training", False, 2, 3, 0, True),
        ("rollout", False, 1, 1, 0, True),
    ]
    assert [engine["estimate_s"] for engine in schedule["engines"]] == [None, None, None]
    assert (schedule["estimate_s"], schedule["tokens"], schedule["jobs"]) == (None, "sampled", 1)
    assert not (grid.parent / "out").exists()
    shown = xcfg("run", grid, "--allow-fake", "--out", grid.parent / "out", "--dry-run")
    assert "engines: 3 to build, 0 reused from disk" in shown.out and "at once: unknown" in shown.out
    assert not (grid.parent / "out").exists()


def test_what_is_on_disk_is_told_and_left_as_it_is(xcfg, grid):
    out = grid.parent / "out"
    xcfg("-q", "run", grid, "--allow-fake", "--out", out, "--filter", "rollout.dtype=bfloat16")
    before = files(out)
    engines = dry(xcfg, grid, "--jobs", 1)["schedule"]["engines"]
    assert [(engine["reused"], engine["built"]) for engine in engines] == [(2, False), (2, False), (0, True)]
    assert [engine["estimate_s"] for engine in engines[:2]] == [0, 0]
    # another rollout engine was measured: it says what this one takes
    assert 0 < engines[2]["estimate_s"] < 60
    assert dry(xcfg, grid, "--jobs", 1)["schedule"]["estimate_s"] == engines[2]["estimate_s"]
    refused = [side["refused"] for engine in dry(xcfg, grid, "--repeat", 2)["schedule"]["engines"][:2]
               for side in engine["sides"]]  # fmt: skip
    assert refused == ["attempt 1 is refused: scored 1 times, 2 are asked for"] * 4
    anew = dry(xcfg, grid, "--no-resume")["schedule"]["engines"]
    assert [engine["reused"] for engine in anew] == [0, 0, 0]
    apart = dry(xcfg, grid, "--no-share")["schedule"]["engines"]
    assert [(len(engine["sides"]), engine["cases"]) for engine in apart] == [(1, 1)] * 6
    one = dry(xcfg, grid, "--only", "training")["schedule"]["engines"]
    assert [engine["role"] for engine in one] == ["training"]
    assert files(out) == before
    (next(out.glob("sides/*")) / "attempt-0001/samples.safetensors").write_bytes(b"")
    tampered = [side["refused"] for engine in dry(xcfg, grid)["schedule"]["engines"] for side in engine["sides"]]
    assert sum("samples.safetensors" in reason for reason in tampered) == 1


def test_a_folder_that_a_run_would_refuse_is_refused(xcfg, grid):
    shutil.copytree(grid.parent / "model", grid.parent / "out")
    done = xcfg("run", grid, "--allow-fake", "--out", grid.parent / "out", "--dry-run")
    assert done.code == 2 and "holds no run of ours" in done.err


def test_an_unreadable_checkpoint_is_refused_before_there_is_a_folder(xcfg, grid):
    (grid.parent / "model/model.safetensors").unlink(missing_ok=True)
    (grid.parent / "model/config.json").unlink()
    ahead, ran = (
        xcfg("run", grid, "--allow-fake", "--out", grid.parent / "out", "--json", *more) for more in (["--dry-run"], [])
    )
    assert ahead.code == ran.code == 2
    assert ahead.document["errors"] == ran.document["errors"]
    assert not (grid.parent / "out/run.json").exists()
