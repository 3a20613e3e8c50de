from __future__ import annotations

import json
from typing import Any

import pytest

from xcfg.errors import InvalidInput
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import MaterializerDescriptor
from xcfg.planner.init import init_experiment
from xcfg.planner.schema import experiment_schema

jsonschema = pytest.importorskip("jsonschema")

FULL: dict[str, Any] = {
    "contract": "ws1",
    "baseline": {"rollout.dtype": "bf16", "eng.seed": None, "sampling.temperature": 1},
    "mode": "product",
    "axes": {"batch.size": [1, 8]},
    "linked": {"d": {"training.compute_dtype": ["bf16", "fp32", "fp32"], "eng.seed": [None, 1, 2]}},
    "fixed": {"training.sharding": "hybrid"},
    "aligned": {"batch.size": {"batch.size": 1, "eng.seed": None}},
    "profiles": {"E": {"summary": "s", "differ": [[], ["execution", "logical"]]}},
    "cases": [{"name": "a", "set": {"rollout.dtype": "fp32"}, "rollout": {"scorer": "plain"}}],
    "slices": {"ci": {"baseline": True, "cases": ["a"], "axes": ["batch.size"], "source_classes": ["logical"]}},
    "constraints": [{"reason": "r", "when": {"batch.size": [1]}, "require": {"rollout.dtype": ["fp32"]}}],
    "operators": {"selected_logprob": {"training": {"backend": "production", "options": {"n": 1}}}},
    "clip_range": [0.8, 1.2],
}


def errors(bench: Any, **changes: Any) -> list[str]:
    schema = experiment_schema(bench.catalog)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors(bench.minimal(**changes))]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        FULL,
        {"axes": [{"knob": "batch.size", "values": [1, 2]}]},
        {"operators": {"selected_logprob": {"rollout": "reference"}}},
        {"training": {"scorer": "trainer", "checkpoint": {"path": "model", "trust_remote_code": True}}},
    ],
)
def test_what_loads_is_valid(bench: Any, changes: dict[str, Any]) -> None:
    assert bench.load(bench.minimal(**changes))
    assert errors(bench, **changes) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"timeout": 3},
        {"schema": "xcfg.experiment/2"},
        {"name": 3},
        {"mode": "zigzag"},
        {"baseline": {"rollout.dtyp": "bf16"}},
        {"baseline": {"rollout.dtype": "int4"}},
        {"baseline": {"batch.size": 0}},
        {"baseline": {"batch.size": 65}},
        {"fixed": {"batch.size": 0}},
        {"linked": {"d": {"batch.size": [0, 1]}}},
        {"linked": {"d": {"batch.size": 1}}},
        {"aligned": {"batch.size": {"batch.sise": 1}}},
        {"profiles": {"E": {"differ": [["excution"]]}}},
        {"profiles": {"E": {}}},
        {"axes": {"batch.size": []}},
        {"axes": {"batch.size": [1, 1]}},
        {"axes": [{"knob": "batch.size", "values": [0]}]},
        {"axes": [{"knob": "batch.size", "vlues": [1]}]},
        {"cases": [{"set": {}}]},
        {"cases": [{"name": "a", "set": {"batch.size": 0}}]},
        {"constraints": [{"reason": "r", "when": {"batch.size": [0]}}]},
        {"slices": {"ci": {"baselin": True}}},
        {"clip_range": [1, 2, 3]},
        {"tokens": {"sample": {"prompts": "p", "max_new_tokens": 1.5}}},
    ],
)
def test_what_does_not_load_is_invalid(bench: Any, changes: dict[str, Any]) -> None:
    assert bench.faults(bench.minimal(**changes))
    assert errors(bench, **changes)


def test_summaries_are_shown_to_editors(bench: Any) -> None:
    assert experiment_schema(bench.catalog)["$defs"]["value of batch.size"]["description"] == "the batch.size"
    json.dumps(experiment_schema(bench.catalog), allow_nan=False)


def test_init_writes_an_experiment_that_plans(bench: Any) -> None:
    knobs = pytest.importorskip("xcfg.builtin.knobs").KNOBS
    bench.catalog.all_knobs = {item.name: item for item in knobs}
    scorers = {"vllm": "eng", "fsdp": "trainer"}
    usual = bench.catalog.scorer
    bench.catalog.materializer = lambda knob, scorer: MaterializerDescriptor(
        knob=knob, scorer=scorer, lifecycle=Lifecycle.ENGINE
    )
    bench.catalog.scorer = lambda name: usual(scorers.get(name, name))
    target = bench.root / "runs" / "my exp.yaml"
    target.parent.mkdir()
    files = init_experiment(bench.root / "model", target)
    assert list(files) == [target, target.parent / "my exp-prompts.jsonl"]
    for path, text in files.items():
        path.write_text(text)
    prompts = [json.loads(line) for line in files[target.parent / "my exp-prompts.jsonl"].splitlines()]
    assert len(prompts) == 8 and all(set(row) == {"id", "text"} for row in prompts)
    loaded = bench.load(files[target], name="runs/my exp.yaml")
    assert loaded.experiment.checkpoint.path == "../model"
    assert loaded.experiment.rollout.scorer == "vllm"
    assert loaded.experiment.training.scorer == "fsdp"


def test_init_refuses_what_is_no_checkpoint(bench: Any) -> None:
    with pytest.raises(InvalidInput, match="no model directory"):
        init_experiment(bench.root / "gone", bench.root / "e.yaml")
    (bench.root / "model" / "config.json").unlink()
    with pytest.raises(InvalidInput, match=r"no config\.json"):
        init_experiment(bench.root / "model", bench.root / "e.yaml")
