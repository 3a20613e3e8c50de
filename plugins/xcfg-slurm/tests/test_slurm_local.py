"""Launches as jobs of submitit's local executor."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("submitit", reason="submitit is not installed")

from xcfg.cube.sameness import differences
from xcfg.runner.events import SideSealed
from xcfg.testing.elsewhere import GRID, endings, until
from xcfg_slurm.executor import SlurmExecutor


@pytest.fixture(scope="module")
def executor() -> SlurmExecutor:
    return SlurmExecutor({"cluster": "local"})


def test_a_grid_is_the_same_bit_for_bit(world, executor: SlurmExecutor, local: Path, tmp_path: Path) -> None:
    report = world.run(tmp_path / "out", executor, axes=GRID, jobs=2)
    assert report.engines.constructed == 4
    assert differences(tmp_path / "out/cube.zarr", local / "cube.zarr") == {}
    assert endings(tmp_path / "out") == ["exited"] * 4
    assert not list((tmp_path / "out").rglob("*.pkl"))
    assert not world.left()


@pytest.mark.full
def test_a_killed_job_is_submitted_again(world, executor: SlurmExecutor, local: Path, tmp_path: Path) -> None:
    """Its processes are killed while its engine scores: one side run is sealed, the next is not."""
    world.shut()
    killed: list[str] = []

    def kill(event: Any) -> None:
        if isinstance(event, SideSealed) and not killed:
            until(world.marks)
            for process in psutil.Process().children(recursive=True):
                if "submitit" in " ".join(process.cmdline()):
                    killed.append(" ".join(process.cmdline()))
                    process.kill()
            until(lambda: not any(psutil.pid_exists(pid) for pid in world.marks()))
            world.go()

    report = world.run(tmp_path / "out", executor, axes=GRID, on_event=kill, jobs=1)
    assert len(killed) == 2
    assert all(run.failure is None for run in report.sides.values())
    assert differences(tmp_path / "out/cube.zarr", local / "cube.zarr") == {}
    assert endings(tmp_path / "out") == ["lost", *["exited"] * 4]
    attempts = list((tmp_path / "out").glob("sides/*/attempt-*"))
    assert len(attempts) == len(report.sides) == 8  # what was sealed was not scored again
    assert not world.left() and not list((tmp_path / "out").rglob("*.pkl"))


@pytest.mark.full
def test_a_stop_leaves_nothing(world, executor: SlurmExecutor, tmp_path: Path) -> None:
    world.shut()
    threads: list[threading.Thread] = []

    def stop_when_waiting(event: Any) -> None:
        if isinstance(event, SideSealed) and not threads:
            threads.append(threading.Thread(target=interrupt))
            threads[0].start()

    def interrupt() -> None:
        until(world.marks)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        world.run(tmp_path / "out", executor, axes=GRID, on_event=stop_when_waiting, jobs=1)
    threads[0].join()
    world.go()
    assert not world.left() and not list((tmp_path / "out").rglob("*.pkl"))
    assert endings(tmp_path / "out") == ["stopped"]


@pytest.mark.full
def test_two_ranks_on_one_node(world, executor: SlurmExecutor, tmp_path: Path) -> None:
    pytest.importorskip("torch")  # brings the launcher
    baseline = {"training.world_size": 2}
    report = world.run(tmp_path / "out", executor, training="testing.fake", baseline=baseline)
    (run,) = [run for run in report.sides.values() if run.config.scorer == "testing.fake"]
    assert run.failure is None
    assert run.result.samples.rank.tolist() == [0, 1, 0, 1]
