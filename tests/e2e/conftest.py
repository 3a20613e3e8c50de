"""The example on real engines, run once for all tests of this folder."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/qwen3-tiny-tp2-fsdp.yaml"
SLICE = ("--slice", "ci")
CHECKPOINT = ROOT / "docs/examples/qwen3-tiny"
TRANSFORMER_ENGINE = Path(sys.prefix) / "transformer-engine"
"""Where ``nox -s dev`` puts the files of the oracle ``te``."""


@frozen
class Done:
    """Exit code and output of one ``xcfg`` process."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def xcfg() -> Callable[..., Done]:
    def call(*arguments: object) -> Done:
        command = [sys.executable, "-m", "xcfg.cli", *(str(item) for item in arguments)]
        paths = os.pathsep.join(filter(None, [str(TRANSFORMER_ENGINE), os.environ.get("PYTHONPATH", "")]))
        environment = {**os.environ, "PYTHONPATH": paths}
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def run_example(xcfg: Callable[..., Done]) -> Callable[..., dict[str, Any]]:
    """Run the example with options into a folder; the document it prints."""

    def run(out: Path, *options: str) -> dict[str, Any]:
        done = xcfg("run", EXAMPLE, "--out", out, "--json", *options)
        assert done.code in (0, 1), f"exit {done.code}\n{done.out[-2000:]}\n{done.err[-4000:]}"
        return done.document

    return run


@pytest.fixture(scope="session")
def example(run_example, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The output folder and the document of the first run of the slice ``ci``: two vLLM engines."""
    out = tmp_path_factory.mktemp("example") / "run"
    return out, run_example(out, *SLICE)


@pytest.fixture(scope="session")
def whole_example(example, run_example) -> tuple[Path, dict[str, Any]]:
    """The whole example, run into the folder of the slice: what is there is not executed again."""
    out, _ = example
    return out, run_example(out)


@pytest.fixture(scope="session")
def float64_logprobs() -> Callable[[Path, Path], dict[str, list[float]]]:
    """Selected-token logprobs of a frozen batch from a plain float64 forward, one sequence at a time, no padding."""

    def score(checkpoint: Path, batch: Path) -> dict[str, list[float]]:
        import torch
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float64).eval()
        found = {}
        with torch.no_grad():
            for line in batch.read_text().splitlines():
                record = json.loads(line)
                prompt, response = record["prompt_ids"], record["response_ids"]
                logits = model(torch.tensor([prompt + response])).logits[0]
                assert logits.dtype is torch.float64
                rows = logits[len(prompt) - 1 : -1]
                chosen = rows[torch.arange(len(response)), torch.tensor(response)]
                found[record["id"]] = (chosen - torch.logsumexp(rows, dim=-1)).tolist()
        return found

    return score
