"""A small experiment on the fake scorers, and the command line called in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from xcfg.cli.entry import main

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


@frozen
class Done:
    """Exit code and output of one call."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture
def xcfg(capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def call(*arguments: object) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main([str(item) for item in arguments])
        out, err = capfd.readouterr()
        return Done(int(leaving.value.code or 0), out, err)

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write the experiment with its model and prompts; fields given by keyword replace those of the template."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"vocab_size": 64}')
    (tmp_path / "model/tokenizer.json").write_text("{}")
    prompts = [{"id": f"p{row}", "token_ids": list(range(1, row + 2))} for row in range(4)]
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(item) + "\n" for item in prompts))

    def make(**changes: Any) -> Path:
        path = tmp_path / "experiment.json"
        path.write_text(json.dumps({**EXPERIMENT, **changes}))
        return path

    return make
