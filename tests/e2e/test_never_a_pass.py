"""Real scorers given something wrong on purpose: each fault is found, and none reads as a pass."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from safetensors.numpy import load_file

from xcfg.comparator.compare import compare
from xcfg.plugin.registry import load_registry
from xcfg.runner.artifacts import load_plan, load_run

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture
def small(tmp_path: Path):
    """Write a small experiment over recorded tokens; returns its path."""
    rows = [
        {"id": "a", "prompt_ids": [5, 6, 7], "response_ids": [8, 9, 10, 11], "mask": [True, True, False, True]},
        {"id": "b", "prompt_ids": [12], "response_ids": [13, 14]},
    ]
    (tmp_path / "tokens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write(rollout: dict, training: dict, baseline: dict, **fields: object) -> Path:
        path = tmp_path / "experiment.json"
        content = {
            "name": "small",
            "checkpoint": {"path": str(EXAMPLES / "qwen3-tiny"), "weight_version": "step-7"},
            "rollout": rollout,
            "training": training,
            "tokens": {"recorded": "tokens.jsonl"},
            "baseline": baseline,
            **fields,
        }
        path.write_text(json.dumps(content))
        return path

    return write


TORCH = {"rollout.scoring_path": "prefill", "rollout.dtype": "float32", "training.compute_dtype": "float32"}


def test_round_trip_preserves_ids_masks_positions_and_weight_version(small, xcfg, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = xcfg("run", small({"scorer": "torch"}, {"scorer": "torch"}, TORCH), "--out", out, "--json")
    assert done.code == 0, done.err
    assert done.document["cases"][0]["active_tokens"] == 5
    for attempt in (out / "sides").glob("*/attempt-0001"):
        arrays = load_file(attempt / "samples.safetensors")
        assert arrays["input_ids"].tolist() == [5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
        assert arrays["position_ids"].tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]
        assert arrays["action_mask"].tolist() == [True, True, False, True, True, True]
        assert arrays["prompt_length"].tolist() == [3, 1]
        assert arrays["logprobs"].dtype == np.float32
        assert json.loads((attempt / "identity.json").read_text())["identity"]["weight_version"] == "step-7"


def test_a_wrong_weight_file_on_one_side(small, xcfg, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(EXAMPLES / "qwen3-tiny", other)
    _flip_last_byte(other / "model.safetensors")
    training = {"scorer": "torch", "checkpoint": {"path": str(other), "weight_version": "step-7"}}
    done = xcfg("run", small({"scorer": "torch"}, training, TORCH), "--out", tmp_path / "run", "--json")
    assert (done.document["status"], done.code) == ("invalid_identity", 6)
    assert "checkpoint_digest" in done.document["cases"][0]["reason"]


def _flip_last_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.full
def test_an_attention_backend_that_vllm_ignores(small, xcfg, tmp_path: Path) -> None:
    baseline = {**TORCH, "rollout.scoring_path": "forced_decode", "rollout.attention_backend": "FLASH_ATTN"}
    done = xcfg("run", small({"scorer": "vllm"}, {"scorer": "torch"}, baseline), "--out", tmp_path / "run", "--json")
    assert (done.document["status"], done.code) == ("invalid_provenance", 6), done.err
    knob = done.document["cases"][0]["knobs"]["rollout.attention_backend"]
    assert (knob["requested"], knob["observed"]) == ("FLASH_ATTN", "CPU_ATTN")


@pytest.fixture
def real_pair(example):
    """The real fp32 pair, read back from disk."""
    out, _ = example
    plan = load_plan(out)
    case = next(item for item in plan.cases if item.name == "fp32-both")
    sides = load_run(out, plan).sides
    return sides[case.rollout.digest()].result, sides[case.training.digest()].result


def judged(rollout, training):
    return compare(rollout, training, load_registry().contract("ws1"))[0]


def test_real_logprobs_shifted_by_one_are_named(real_pair) -> None:
    rollout, training = real_pair
    logprobs = training.samples.logprobs.copy()
    for row in range(training.samples.rows):
        part = training.samples.response_slice(row)
        logprobs[part] = np.roll(logprobs[part], 1)
    found = judged(rollout, evolve(training, samples=evolve(training.samples, logprobs=logprobs)))
    assert found.status == "fail"
    finding = next(item for item in found.findings if "shift" in item.rule)
    assert (finding.source_class, finding.subclass) == ("logical", "tokens-and-masks")


def test_a_dropped_rank_of_a_real_run(real_pair) -> None:
    rollout, training = real_pair
    assert training.expected_ranks == 2
    assert judged(rollout, evolve(training, ranks=training.ranks[:1])).status == "invalid_artifact"


def test_a_prompt_token_in_the_mask_of_a_real_run(real_pair) -> None:
    rollout, training = real_pair
    samples = training.samples
    prompt, response = samples.prompt_length.copy(), samples.response_length.copy()
    prompt[0] -= 1
    response[0] += 1
    moved = evolve(
        samples,
        prompt_length=prompt,
        response_length=response,
        action_mask=np.concatenate([[True], samples.action_mask]),
        logprobs=np.concatenate([np.zeros(1, np.float32), samples.logprobs]),
    )
    found = judged(rollout, evolve(training, samples=moved))
    assert found.status == "invalid_identity" and "prompt_length" in found.reason
