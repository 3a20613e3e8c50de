"""Runs that are cut short: Ctrl-C, no room on the disk, a missing engine. What was finished is kept."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest


def command(experiment: Path, *extra: str) -> list[str]:
    out = str(experiment.parent / "out")
    return [sys.executable, "-m", "xcfg.cli", "run", str(experiment), "--allow-fake", "--out", out, *extra]


def of_folder(out: Path) -> list[psutil.Process]:
    """Living processes that were started for this output folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(out) in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_children_and_keeps_what_is_finished(write, xcfg, number: int) -> None:
    experiment = write(axes={}, cases=[], slices={}, training={"scorer": "fake_hang"})
    out = experiment.parent / "out"
    running = subprocess.Popen(command(experiment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(out.glob("launches/0002/staging/phase-*")):
        time.sleep(0.1)
    running.send_signal(number)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "interrupted" in err
    assert not of_folder(out)
    assert len(list(out.glob("sides/*/attempt-0001/COMPLETE"))) == 1
    experiment.write_text(experiment.read_text().replace("fake_hang", "fake"))
    again = xcfg("-q", "run", experiment, "--allow-fake", "--out", out, "--json").document
    assert again["status"] == "pass"
    assert again["engines"] == {"distinct": 2, "constructed": 1, "reused_from_disk": 1}


def test_no_room_is_an_environment_error_and_leaves_nothing_half_written(write) -> None:
    experiment = write(axes={}, cases=[], slices={})

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command(experiment, "--json"), capture_output=True, text=True, preexec_fn=small_files, env=environment
    )
    assert done.returncode == 7, done.stderr
    document = json.loads(done.stdout)
    assert document.get("code") == 7 or document["status"] == "environment_error"
    assert "space" in done.stdout
    out = experiment.parent / "out"
    assert not list(out.rglob("*.partial")) and not list(out.rglob("COMPLETE"))
    assert subprocess.run(command(experiment), capture_output=True).returncode == 0


def test_a_reader_that_stops_early_is_no_internal_error(write) -> None:
    program = f"{sys.executable} -m xcfg.cli knobs list --json | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert "internal error" not in done.stderr
    assert int(done.stdout) in (0, 141)


def test_an_unreadable_tokenizer(write, xcfg) -> None:
    experiment = write()
    (experiment.parent / "model/tokenizer.json").write_text("{ not json")
    done = xcfg("run", experiment, "--allow-fake", "--out", experiment.parent / "out")
    assert done.code == 2 and "tokenizer.json" in done.err
    assert not (experiment.parent / "out").exists()


def test_two_runs_in_one_folder(write, xcfg) -> None:
    experiment = write(axes={}, cases=[], slices={}, training={"scorer": "fake_hang"})
    out = experiment.parent / "out"
    running = subprocess.Popen(command(experiment, "--timeout", "60"), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(out.glob("launches/0002")):
        time.sleep(0.1)
    done = xcfg("run", experiment, "--allow-fake", "--out", out)
    running.send_signal(signal.SIGINT)
    running.wait(60)
    assert done.code == 2 and str(running.pid) in done.err
