"""One deterministic logprob kernel on real vLLM and real FSDP2: bound in the engines, read back from them."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
pytestmark = [pytest.mark.full, pytest.mark.engine, pytest.mark.timeout(900)]

BASELINE = {
    "rollout.tensor_parallel_size": 2,
    "rollout.dtype": "bfloat16",
    "rollout.scoring_path": "forced_decode",
    "rollout.enforce_eager": True,
    "execution.prefix_cache": False,
    "execution.threads": 1,
    "sampling.logprobs_mode": "raw_logprobs",
    "training.world_size": 2,
    "training.sharding": "full_shard",
    "training.compute_dtype": "bfloat16",
    "batch.size": 16,
}


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")

    def make(name: str, **fields: object) -> Path:
        sample = {"prompts": str(EXAMPLES / "qwen3-tiny-prompts.jsonl"), "max_new_tokens": 16, "ignore_eos": True}
        content = {
            "name": name,
            "checkpoint": {"path": str(EXAMPLES / "qwen3-tiny")},
            "rollout": {"scorer": "vllm"},
            "training": {"scorer": "fsdp"},
            "tokens": {"sample": sample},
            "baseline": BASELINE,
            **fields,
        }
        (folder / f"{name}.json").write_text(json.dumps(content))
        return folder / f"{name}.json"

    return make


def test_both_sides_call_it_and_say_so(write, xcfg, tmp_path) -> None:
    both = {"selected_logprob": {"rollout": "deterministic", "training": "deterministic"}}
    done = xcfg("run", write("both", operators=both), "--out", tmp_path / "both", "--json")
    assert done.code in (0, 1), done.err
    (case,) = done.document["cases"]
    (records,) = {
        tuple(json.loads(path.read_text())["operators"]["selected_logprob"]["backend"] for path in attempts)
        for attempts in [sorted((tmp_path / "both/sides").glob("*/attempt-0001/observed.json"))]
    }
    assert records == ("deterministic", "deterministic")
    # vLLM sampled with its own logprobs: those of the kernel are not held against them
    assert "sampled_against_forced" not in {item["rule"] for item in case["findings"]}
    plain = xcfg("run", write("plain"), "--out", tmp_path / "plain", "--json").document["cases"][0]
    # the matrix products of the two engines are what differs, not how their logits become logprobs
    assert case["metrics"]["max_abs_dlogp"] == pytest.approx(plain["metrics"]["max_abs_dlogp"], abs=1e-5)


def test_processed_logprobs_cannot_be_taken_over(write, xcfg, tmp_path) -> None:
    rollout = {"selected_logprob": {"rollout": "deterministic"}}
    baseline = {**BASELINE, "sampling.logprobs_mode": "processed_logprobs"}
    path = write("processed", operators=rollout, baseline=baseline)
    done = xcfg("run", path, "--out", tmp_path / "out", "--json")
    assert (done.document["status"], done.code) == ("unsupported", 8)
    assert "top-k and top-p kernels" in done.document["cases"][0]["reason"]
