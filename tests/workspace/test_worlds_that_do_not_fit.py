"""Topologies that cannot be: rejected while planning, with the reason, on the installed plugins."""

import json
import subprocess
import sys
from pathlib import Path

CHECKPOINT = Path(__file__).parents[2] / "docs/examples/qwen3-tiny"


def plan(tmp_path: Path, baseline: dict, *extra: str, training: str = "fsdp") -> tuple[int, dict]:
    (tmp_path / "tokens.jsonl").write_text('{"id": "a", "prompt_ids": [5], "response_ids": [6, 7]}\n')
    content = {
        "name": "world",
        "checkpoint": {"path": str(CHECKPOINT)},
        "rollout": {"scorer": "torch"},
        "training": {"scorer": training},
        "tokens": {"recorded": "tokens.jsonl"},
        "baseline": {"rollout.scoring_path": "prefill", **baseline},
    }
    (tmp_path / "e.json").write_text(json.dumps(content))
    command = [sys.executable, "-m", "xcfg.cli", "plan", str(tmp_path / "e.json"), "--json", *extra]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


def test_hybrid_sharding_needs_two_ranks(tmp_path: Path) -> None:
    code, document = plan(tmp_path, {"training.sharding": "hybrid", "training.world_size": 1})
    assert code == 0 and document["counts"] == {"planned": 0, "rejected": 1}
    assert "hybrid" in document["cases"][0]["rejected"]


def test_strict_makes_it_an_error(tmp_path: Path) -> None:
    knobs = {"training.sharding": "full_shard", "training.world_size": 2}
    code, document = plan(tmp_path, knobs, "--strict", training="torch")
    assert (code, document["code"]) == (8, 8)


def test_torch_is_one_process(tmp_path: Path) -> None:
    code, document = plan(tmp_path, {"rollout.tensor_parallel_size": 2})
    assert code == 0 and document["cases"][0]["kind"] == "unsupported"
    assert "rollout.tensor_parallel_size" in document["cases"][0]["rejected"]
