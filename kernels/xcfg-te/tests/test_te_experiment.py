"""An experiment whose training side scores with ``te``: chosen by id, read back, and judged against ``reference``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from xcfg.plugin.registry import load_registry

CHECKPOINT = Path(__file__).parents[3] / "docs/examples/qwen3-tiny"
EXPERIMENT = {
    "schema": "xcfg.experiment/1",
    "name": "te",
    "checkpoint": {"path": str(CHECKPOINT)},
    "rollout": {"scorer": "torch"},
    "training": {"scorer": "torch"},
    "tokens": {"recorded": "tokens.jsonl"},
    "baseline": {
        "rollout.dtype": "float32",
        "training.compute_dtype": "float32",
        "rollout.scoring_path": "prefill",
        "execution.threads": 1,
    },
}


@pytest.fixture
def xcfg(tmp_path, interpreting):
    """The exit code and the document of a command on an experiment. The interpreter is left for the plugin to ask."""
    tokens = [{"id": str(row), "prompt_ids": [5 + row], "response_ids": list(range(20, 52))} for row in range(2)]
    (tmp_path / "tokens.jsonl").write_text("".join(json.dumps(item) + "\n" for item in tokens))
    environment = {name: value for name, value in interpreting.items() if name != "TRITON_INTERPRET"}

    def call(command: str, *arguments: object, **changes):
        (tmp_path / "experiment.json").write_text(json.dumps({**EXPERIMENT, **changes}))
        line = [sys.executable, "-m", "xcfg.cli", command, tmp_path / "experiment.json", *arguments, "--json"]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True, env=environment, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return call


def test_it_scores_the_training_side(xcfg, tmp_path) -> None:
    pytest.importorskip("xcfg_torch")
    out = tmp_path / "out"
    chosen = {"selected_logprob": {"rollout": {"backend": "reference"}, "training": {"backend": "te"}}}
    code, document = xcfg("run", "--out", out, operators=chosen)
    assert code == 0, json.dumps(document, indent=1)[-4000:]
    (case,) = document["cases"]
    assert (case["status"], case["active_tokens"]) == ("pass", 64)
    largest = case["metrics"]["max_abs_dlogp"]
    # The same model, tokens and dtype: the kernel alone differs. Not one bit would be no other kernel.
    assert 0 < largest <= load_registry().contract("ws1").max_abs_dlogp["float32"]
    print(f"te against reference in an experiment: max |d| {largest:.2g} over {case['active_tokens']} tokens")
    (bound,) = (
        json.loads(path.read_text())["operators"]["selected_logprob"]
        for path in out.glob("sides/*/attempt-0001/observed.json")
        if '"te"' in path.read_text()
    )
    assert (bound["backend"], bound["fallback"]) == ("te", False)
    assert bound["concrete"].startswith("transformer_engine.common.triton.cross_entropy.cross_entropy_forward_kernel")
    assert bound["build"].startswith("transformer_engine ") and "source sha256 " in bound["build"]


def test_it_stands_in_an_axis_beside_an_engine_with_logprobs_of_its_own(xcfg) -> None:
    for scorer in ("xcfg_vllm", "xcfg_fsdp"):
        pytest.importorskip(scorer)
    axis = {"logp.backend": ["production", "reference", "te"]}
    code, plan = xcfg("plan", rollout={"scorer": "vllm"}, training={"scorer": "fsdp"}, axes=axis)
    assert code == 0, plan
    assert sorted(case["axes"]["logp.backend"] for case in plan["cases"]) == sorted(axis["logp.backend"])
    assert not any(case["rejected"] for case in plan["cases"])


def test_it_does_not_serve_a_rollout_engine(xcfg) -> None:
    """Its interpreter would take over the engine's own Triton kernels."""
    code, plan = xcfg("plan", axes={"logp.backend": ["reference", "te"]}, baseline={"logp.backend": "reference"})
    (refused,) = (case for case in plan["cases"] if case["axes"]["logp.backend"] == "te")
    assert code == 0 and "'te' of selected_logprob does not serve the rollout side" in refused["rejected"]
