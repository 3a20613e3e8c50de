"""Real engines that are killed or interrupted in the middle. Full tier."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
pytestmark = [pytest.mark.full, pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """vLLM at TP=2 against torch, over tokens long enough that scoring takes a while."""
    rows = [{"id": f"s{row}", "prompt_ids": [5 + row], "response_ids": [20 + row] * 400} for row in range(6)]
    (tmp_path / "tokens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    content = {
        "name": "chaos",
        "checkpoint": {"path": str(EXAMPLES / "qwen3-tiny")},
        "rollout": {"scorer": "vllm"},
        "training": {"scorer": "torch"},
        "tokens": {"recorded": "tokens.jsonl"},
        "baseline": {"rollout.tensor_parallel_size": 2, "rollout.enforce_eager": True, "batch.size": 1},
    }
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(content))
    return path


def start(experiment: Path) -> subprocess.Popen[str]:
    out = experiment.parent / "out"
    command = [sys.executable, "-m", "xcfg.cli", "-q", "run", str(experiment), "--out", str(out), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def workers(root: int) -> list[psutil.Process]:
    """vLLM's tensor-parallel workers below a process, once the engine is scoring."""
    return [item for item in psutil.Process(root).children(recursive=True) if "Worker" in " ".join(item.cmdline())]


def until(found: Callable[[], object], seconds: float) -> object:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := found():
            return result
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def scoring(experiment: Path) -> bool:
    phases = (experiment.parent / "out").glob("launches/*/staging/phase-00000.txt")
    return any("score" in path.read_text() for path in phases)


def test_a_killed_worker_is_a_scorer_error_and_the_other_side_is_kept(experiment: Path) -> None:
    running = start(experiment)
    until(lambda: scoring(experiment), 180)
    time.sleep(2)
    victims = workers(running.pid)
    assert len(victims) == 2
    killed = time.monotonic()
    os.kill(victims[1].pid, signal.SIGKILL)
    gone = until(lambda: list((experiment.parent / "out").glob("sides/*/attempt-0001/failure.json")), 30)
    assert gone and time.monotonic() - killed < 30
    out, err = running.communicate(timeout=300)
    document = json.loads(out)
    assert (document["status"], running.returncode) == ("scorer_error", 7), err
    assert not psutil.pid_exists(victims[0].pid)
    assert len(list((experiment.parent / "out").glob("sides/*/attempt-0001/COMPLETE"))) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process_and_resumes(experiment: Path, number: int) -> None:
    running = start(experiment)
    until(lambda: scoring(experiment), 180)
    tree = psutil.Process(running.pid).children(recursive=True)
    assert len(tree) >= 4
    running.send_signal(number)
    running.communicate(timeout=60)
    assert running.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    until(lambda: not any(item.is_running() and item.status() != "zombie" for item in tree), 30)
    again = start(experiment)
    out, err = again.communicate(timeout=600)
    assert again.returncode in (0, 1), err
    assert json.loads(out)["engines"]["constructed"] == 2
