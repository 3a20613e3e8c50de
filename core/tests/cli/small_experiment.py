"""A small experiment on the fake scorers and the files it needs."""

import json
from pathlib import Path
from typing import Any

EXPERIMENT: dict[str, Any] = {
    "schema": "xcfg.experiment/1",
    "name": "small",
    "checkpoint": {"path": "model"},
    "rollout": {"scorer": "fake"},
    "training": {"scorer": "fake"},
    "tokens": {"sample": {"prompts": "prompts.jsonl", "max_new_tokens": 6}},
    "baseline": {"rollout.dtype": "bfloat16", "training.compute_dtype": "bfloat16"},
    "axes": {"rollout.dtype": ["bfloat16", "float32"], "batch.size": [8, 1]},
    "cases": [{"name": "fp32-both", "set": {"rollout.dtype": "float32", "training.compute_dtype": "float32"}}],
    "slices": {"fp32": {"cases": ["fp32-both"]}},
}


def make_files(folder: Path) -> None:
    """The model and the prompts of the experiment."""
    (folder / "model").mkdir()
    (folder / "model/config.json").write_text('{"vocab_size": 64}')
    (folder / "model/tokenizer.json").write_text("{}")
    prompts = [{"id": f"p{row}", "token_ids": list(range(1, row + 2))} for row in range(4)]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(item) + "\n" for item in prompts))
