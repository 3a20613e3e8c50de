"""A coordinator that is interrupted or killed, as a process of its own with a real engine process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

SCRIPT = Path(__file__).parent / "modules" / "run_script.py"


def _until(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_children_are_gone_and_the_finished_side_run_is_kept(world, number):
    run = subprocess.Popen([sys.executable, str(SCRIPT), str(world.root)], stderr=subprocess.PIPE, text=True)
    _until((world.home / "hanging").exists)
    _until(lambda: list(world.out.glob("sides/*/attempt-0001/COMPLETE")))
    tree = psutil.Process(run.pid).children(recursive=True)
    assert len(tree) == 2  # guard and child
    os.kill(run.pid, number)
    _, err = run.communicate(timeout=30)
    if number != signal.SIGKILL:
        assert "KeyboardInterrupt" in err
        assert not any(psutil.pid_exists(process.pid) for process in tree)
    _until(lambda: not any(psutil.pid_exists(process.pid) for process in tree), 10.0)

    # the next run reuses what was finished: only the batch size of 2 was
    side = world.side("rollout", "SlowSecond", batch__size=2)
    report = world.run(world.plan((side, side)))
    assert (report.engines.constructed, report.sides[side.digest()].attempt) == (0, 1)
