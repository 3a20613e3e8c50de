"""The kit's checks of an executor, on submitit's processes of this machine."""

from __future__ import annotations

import psutil
import pytest

pytest.importorskip("submitit", reason="submitit is not installed")

from xcfg.testing import ExecutorTests
from xcfg.testing.elsewhere import until
from xcfg_slurm.plugin import xcfg_executors

(SLURM,) = xcfg_executors()


@pytest.mark.full
class TestSlurm(ExecutorTests):
    descriptor = SLURM
    options = {"cluster": "local"}

    def lose_machine(self, executor, world):
        """Submitit's own processes go first, so that nothing there can tell how the launch ended."""
        processes = psutil.Process().children(recursive=True)
        job = [process for process in processes if "submitit" in " ".join(process.cmdline())]
        assert job
        for process in job:
            process.kill()
        until(lambda: not any(psutil.pid_exists(pid) for pid in world.marks()))
