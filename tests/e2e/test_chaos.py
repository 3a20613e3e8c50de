"""Real engines that are killed or interrupted in the middle.

A grid of torch against FSDP, 2 kills, in the tests that CI runs; a grid of vLLM against torch, 10 kills, and single
kills at chosen moments in the full tier. What must hold is said in ``core/tests/faults/chaos.py``.
"""

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
from attrs import evolve

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"
sys.path.append(str(ROOT / "core/tests"))
from faults.chaos import CHILD, PARENT, Counts, chaos, undisturbed  # noqa: E402
from faults.place import Place  # noqa: E402

KILLS_A_FOLDER = 4
TORCH_FSDP = {
    "rollout": {"scorer": "torch"},
    "training": {"scorer": "fsdp"},
    "baseline": {
        "rollout.scoring_path": "prefill",
        "rollout.dtype": "float32",
        "training.compute_dtype": "float32",
        "training.world_size": 2,
        "batch.micro_size": 1,
    },
    "axes": {"rollout.dtype": ["float32", "bfloat16"], "batch.micro_size": [1, 2]},
}
VLLM_TORCH = {
    "rollout": {"scorer": "vllm"},
    "training": {"scorer": "torch"},
    "baseline": {
        "rollout.tensor_parallel_size": 1,
        "rollout.enforce_eager": True,
        "rollout.dtype": "float32",
        "training.compute_dtype": "float32",
    },
    "axes": {"rollout.tensor_parallel_size": [1, 2], "training.compute_dtype": ["float32", "bfloat16"]},
}


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


@pytest.mark.full
@pytest.mark.engine
@pytest.mark.timeout(900)
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


@pytest.mark.full
@pytest.mark.engine
@pytest.mark.timeout(900)
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


def _real(root: Path, grid: dict[str, object]) -> Place:
    place = evolve(Place.make(root), extra={"XCFG_DISABLE_PLUGINS": ""})
    (root / "tokens.jsonl").unlink()
    rows = [{"id": f"s{row}", "prompt_ids": [5 + row], "response_ids": [20 + row] * 12} for row in range(4)]
    (root / "tokens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    place.write(checkpoint={"path": str(EXAMPLES / "qwen3-tiny")}, mode="product", **grid)
    return place


@pytest.mark.parametrize(
    ("grid", "cases", "kills", "seed"),
    [
        pytest.param(TORCH_FSDP, 4, 2, 0, id="torch-fsdp", marks=pytest.mark.timeout(1200)),
        pytest.param(
            VLLM_TORCH,
            4,
            10,
            100,
            id="vllm-torch",
            marks=[pytest.mark.full, pytest.mark.engine, pytest.mark.timeout(7200)],
        ),
    ],
)
def test_a_killed_grid_resumes_to_the_same_result(grid, cases: int, kills: int, seed: int, tmp_path, capsys) -> None:
    """Half of the kills are the coordinator's, the others a rank's, at moments drawn from the seed of each folder."""
    whole = undisturbed(_real(tmp_path / "undisturbed", grid))
    assert len(whole.document["cases"]) == cases
    counts = Counts()
    while counts.kills.total() < kills:
        left = min(KILLS_A_FOLDER, kills - counts.kills.total())
        chaos(_real(tmp_path / str(seed), grid), whole, seed, left, counts, victims=(PARENT, CHILD))
        seed += 1
    with capsys.disabled():
        print(f"\n{counts}")
