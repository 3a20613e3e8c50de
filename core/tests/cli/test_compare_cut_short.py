"""Comparisons that are cut short: no room on the disk, Ctrl-C. Nothing is left behind; memory stays bounded."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from xcfg.comparator.recorded import pairs
from xcfg.comparator.recorded.store import Store

from .recorded_files import compared, record, write

COMMAND = [sys.executable, "-m", "xcfg.cli", "compare"]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of this process and of those it starts, empty."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def sides(folder: Path, count: int) -> list[Path]:
    line = '{"id": %d, "response_ids": [5, 6, 7, 8], "logprobs": [-1.0, -2.0, -3.0, -4.0], "dtype": "float32"}\n'
    text = "".join(line % at for at in range(count))
    return [write(folder / name, text) for name in ("rollout.jsonl", "training.jsonl")]


def test_a_file_that_may_grow_no_further_is_the_machine_s_fault(tmp_path: Path, scratch: Path) -> None:
    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    done = subprocess.run(
        [*COMMAND, *sides(tmp_path, 2000), "--json"],
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 7, done.stderr
    document = json.loads(done.stdout)
    assert (document["schema"], document["code"]) == ("xcfg.error/1", 7)
    assert "cannot be written to disk" in document["errors"][0]["message"]
    assert "TMPDIR" in document["errors"][0]["hint"]
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("owner, method", [(Store, "append"), (pairs.PairsWriter, "row"), (Store, "__exit__")])
def test_no_room_at_any_step_leaves_nothing(xcfg, tmp_path: Path, scratch: Path, monkeypatch, owner, method) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(owner, method, no_room)
    done = compared(xcfg, tmp_path, [record()], [record()])
    assert (done.code, done.document["code"], done.document["status"]) == (7, 7, "error")
    assert "No space left on device" in done.document["errors"][0]["message"]
    assert not list(scratch.iterdir())


def test_no_folder_for_temporary_files(xcfg, tmp_path: Path, monkeypatch) -> None:
    """A full disk shows here first: Python finds no folder in which it can write."""

    def none(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "mkdtemp", none)
    done = compared(xcfg, tmp_path, [record()], [record()])
    assert (done.code, done.document["code"]) == (7, 7)
    assert "no folder for temporary files: No usable temporary directory" in done.document["errors"][0]["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_removes_what_was_written(tmp_path: Path, scratch: Path, number: int) -> None:
    """The first ten thousand records are told on standard error, and as many are still to come."""
    running = subprocess.Popen(
        [*COMMAND, *sides(tmp_path, 20_000)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert running.stderr.readline() == "xcfg: rollout: 10000 records read\n"
    assert [path.name.startswith("xcfg-compare-") for path in scratch.iterdir()] == [True]
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "interrupted" in err and not out
    assert not list(scratch.iterdir())


def test_nothing_is_left_behind_by_a_verdict(xcfg, tmp_path: Path, scratch: Path) -> None:
    for training, code in (([record()], 0), ([record(logprobs=[-1, -2, -4])], 1), ([record("b")], 6), ("{", 6)):
        assert compared(xcfg, tmp_path, [record()], training).code == code
        assert not list(scratch.iterdir())


PEAK = """
import sys
from xcfg.cli.entry import main
try:
    main(sys.argv[1:])
except SystemExit as leaving:
    status = open("/proc/self/status").read()
    print(leaving.code, int(status.partition("VmHWM:")[2].split()[0]) // 1024, file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_tokens(tmp_path: Path, scratch: Path) -> None:
    """Two million tokens and eight: the second pair of files holds 144 MB more."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def peak(rows: int, length: int = 1000) -> int:
        paths = []
        for seed, name in enumerate(("rollout", "training")):
            random = np.random.default_rng(seed)
            path = tmp_path / f"{name}.parquet"
            offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * length)
            tokens = pa.array(np.arange(rows * length, dtype=np.int64) % 50_000)
            logprobs = pa.array(-random.random(rows * length, dtype=np.float32))
            table = {
                "id": pa.array([f"s{at}" for at in range(rows)]),
                "response_ids": pa.ListArray.from_arrays(offsets, tokens),
                "logprobs": pa.ListArray.from_arrays(offsets, logprobs),
            }
            parquet.write_table(pa.table(table), path, row_group_size=200, compression="NONE", use_dictionary=False)
            paths.append(path)
        command = [sys.executable, "-c", PEAK, "-q", "compare", *paths, "--dtype", "float32", "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert json.loads(done.stdout)["active_tokens"] == rows * length
        code, mebibytes = map(int, done.stderr.split())
        assert code == 1
        return mebibytes

    assert peak(8000) - peak(2000) < 32
