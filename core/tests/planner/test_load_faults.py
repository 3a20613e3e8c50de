from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from xcfg.errors import InvalidInput, PluginError
from xcfg.model.experiment import Mode
from xcfg.planner.load import load_experiment

YAML = """\
schema: xcfg.experiment/1
name: small
checkpoint: {path: model}
rollout: {scorer: eng}
training: {scorer: trainer}
tokens:
  sample: {prompts: prompts.jsonl}
"""


def test_a_sound_file_loads_and_is_normalised(bench: Any) -> None:
    loaded = bench.load(YAML + "baseline: {rollout.dtype: bf16}\naxes: {rollout.dtype: [bf16, fp32]}\n", name="e.yaml")
    assert loaded.root == bench.root
    assert loaded.experiment.mode is Mode.ONE_AT_A_TIME
    assert dict(loaded.experiment.baseline) == {"rollout.dtype": "bfloat16"}
    assert dict(loaded.experiment.axes) == {"rollout.dtype": ("bfloat16", "float32")}


def test_the_three_formats_give_one_experiment(bench: Any) -> None:
    toml = """
schema = "xcfg.experiment/1"
name = "small"
checkpoint = {path = "model"}
rollout = {scorer = "eng"}
training = {scorer = "trainer"}
tokens = {sample = {prompts = "prompts.jsonl"}}
"""
    from_yaml = bench.load(YAML, name="e.yaml").experiment
    assert from_yaml == bench.load(toml, name="e.toml").experiment == bench.load(bench.minimal()).experiment


def test_axes_as_a_list_are_the_mapping(bench: Any) -> None:
    rows = [{"knob": "batch.size", "values": [1, 8]}, {"knob": "rollout.dtype", "values": ["fp32"]}]
    axes = bench.experiment(axes=rows).axes
    assert list(axes.items()) == [("batch.size", (1, 8)), ("rollout.dtype", ("float32",))]


def test_all_faults_come_at_once_in_the_order_of_the_file(bench: Any) -> None:
    text = """\
schema: xcfg.experiment/2
name: small
checkpoint: {path: nowhere}
rollout: {scorer: eng, timeout: 3}
training: {scorer: trainer}
threshold: 0.1
tokens:
  sample: {prompts: gone.jsonl, temperature: .nan, seed: -1}
baseline:
  rollout.dtyp: bf16
  rollout.dtype: int4
axes:
  - knob: rollout.dtype
    vlues: [bf16]
  - {knob: batch.size, values: [1, 1, 65]}
mode: prduct
"""
    faults = bench.faults(text, name="e.yaml")
    places = [fault.split(": ")[0] for fault in faults]
    assert places == [
        "e.yaml:1:9 schema",
        "e.yaml:3:20 checkpoint.path",
        "e.yaml:4:24 rollout.timeout",
        "e.yaml:6:1 threshold",
        "e.yaml:8:21 tokens.sample.prompts",
        "e.yaml:8:46 tokens.sample.temperature",
        "e.yaml:8:58 tokens.sample.seed",
        "e.yaml:10:3 baseline.rollout.dtyp",
        "e.yaml:11:18 baseline.rollout.dtype",
        "e.yaml:13:5 axes.0.values",
        "e.yaml:14:5 axes.0.vlues",
        "e.yaml:15:36 axes.1.values.1",
        "e.yaml:15:39 axes.1.values.2",
        "e.yaml:16:7 mode",
    ]
    text = "\n".join(faults)
    assert "did you mean 'values'?" in text
    assert "did you mean 'rollout.dtype'?" in text
    assert "one of float32, float16, bfloat16" in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"timeout": 3}, "'timeout' is an option of `xcfg run`, not part of an experiment"),
        ({"allow_fake": True}, "'allow_fake' is an option of `xcfg run`"),
        ({"jobs": 2, "resume": False}, "'resume' is an option of `xcfg run`"),
        ({"rollout": {"scorer": "eng", "interpreter": "py"}}, "'interpreter' is an option of `xcfg run`"),
        ({"tolerance": {"bfloat16": 1}}, "limits belong to the tolerance contract"),
        ({"baseline": {"max_abs_dlogp": 1}}, "limits belong to the tolerance contract"),
        ({"contract": {"max_abs_dlogp": {"float32": 1}}}, "limits belong to the tolerance contract"),
        ({"contract": 0.1}, "limits belong to the tolerance contract"),
        ({"contract": "ws2"}, "unknown contract 'ws2', did you mean 'ws1'?"),
    ],
)
def test_what_does_not_belong_in_an_experiment_says_why(bench: Any, changes: dict[str, Any], expected: str) -> None:
    assert expected in "\n".join(bench.faults(bench.minimal(**changes)))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"tokens": {}}, "exactly one of sample and recorded is required, neither is given"),
        (
            {"tokens": {"sample": {"prompts": "prompts.jsonl"}, "recorded": "prompts.jsonl"}},
            "exactly one of sample and recorded is required, both are given",
        ),
        ({"tokens": {"recorded": "gone.jsonl"}}, "no recorded tokens file"),
        ({"tokens": {"recorded": "empty.jsonl"}}, "is empty"),
        ({"axes": {"batch.size": []}}, "an axis needs at least one value"),
        ({"axes": {"batch.size": 8}}, "expected a list"),
        ({"axes": {"rollout.dtype": ["bf16", "bfloat16"]}}, "value 'bfloat16' appears twice"),
        ({"axes": [{"knob": "batch.size", "values": [1]}, {"knob": "batch.size", "values": [2]}]}, "an axis already"),
        ({"baseline": {"batch.size": None}}, "a value is required"),
        ({"baseline": {"batch.size": True}}, "True is not accepted"),
        ({"baseline": {"sampling.temperature": 10**400}}, "sampling.temperature"),
        ({"cases": [{"name": "a", "set": {"batch.size": 99}}]}, "99 is out of range"),
        ({"cases": [{"name": "a"}, {"name": "a"}]}, "case 'a' appears twice"),
        ({"cases": [{"name": "baseline"}]}, "'baseline' is the name of the unchanged case"),
        ({"cases": [{"set": {}}]}, "cases.0.name: this field is required"),
        ({"cases": [{"name": "a", "rollout": {"scorer": "engg"}}]}, "unknown scorer 'engg', did you mean 'eng'?"),
        ({"cases": [{"name": "a", "rollout": {"checkpoint": {"path": "gone"}}}]}, "no model directory"),
        ({"constraints": [{"reason": "r", "when": {"batch.sise": [1]}}]}, "did you mean 'batch.size'?"),
        ({"constraints": [{"reason": "r", "require": {"batch.size": [0]}}]}, "0 is out of range"),
        ({"slices": {"ci": {"cases": ["a"]}}, "cases": [{"name": "ab"}]}, "unknown case 'a', did you mean 'ab'?"),
        ({"slices": {"ci": {"axes": ["batch.size"]}}}, "unknown axis 'batch.size'"),
        ({"slices": {"ci": {"source_classes": ["arithmetics"]}}}, "did you mean 'arithmetic'?"),
        ({"slices": {"ci": {}}}, "the slice selects nothing"),
        ({"clip_range": [0.2, 0.2]}, "are no bounds of a ratio"),
        ({"clip_range": [0.8]}, "expected 2 values, got 1"),
        ({"baseline": {"logp.backend": "refrence"}}, "did you mean 'reference'?"),
        ({"name": " "}, "an experiment needs a name"),
    ],
)
def test_each_kind_of_wrong_value_is_named(bench: Any, changes: dict[str, Any], expected: str) -> None:
    (bench.root / "empty.jsonl").touch()
    assert expected in "\n".join(bench.faults(bench.minimal(**changes)))


def test_one_fault_for_one_value(bench: Any) -> None:
    text = YAML + "baseline: {batch.size: .inf}\n"
    assert len(bench.faults(text, name="e.yaml")) == 1


def test_operators_and_logp_backend_must_not_contradict(bench: Any) -> None:
    operators = {"selected_logprob": {"rollout": "reference", "training": {"backend": "production"}}}
    agreed = {"selected_logprob": {"training": {"backend": "production"}}}
    found = bench.faults(bench.minimal(operators=operators, baseline={"logp.backend": "production"}))
    assert len(found) == 1 and "operators.selected_logprob.rollout: 'reference' disagrees" in found[0]
    found = bench.faults(bench.minimal(operators=agreed, axes={"logp.backend": ["reference", "production"]}))
    assert len(found) == 1 and "logp.backend is varied" in found[0]
    found = bench.faults(bench.minimal(operators=agreed, cases=[{"name": "a", "set": {"logp.backend": "reference"}}]))
    assert len(found) == 1 and "logp.backend is varied" in found[0]
    assert bench.experiment(operators=agreed, baseline={"logp.backend": "production"})


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("e.yaml", "", "the file is empty"),
        ("e.yaml", "# nothing\n", "the file is empty"),
        ("e.yaml", "- a\n", "expected a mapping at the top"),
        ("e.json", "3", "expected a mapping at the top"),
        ("e.txt", "a: 1", "an experiment file ends in one of .json, .toml, .yaml, .yml"),
        ("e.yaml", "a: [", "not YAML"),
    ],
)
def test_a_file_that_is_no_experiment(bench: Any, name: str, content: str, expected: str) -> None:
    assert expected in bench.faults(content, name=name)[0]


def test_a_file_that_cannot_be_read(bench: Any) -> None:
    for path, expected in (("gone.yaml", "no such file"), ("folder.yaml", "cannot be read")):
        (bench.root / "folder.yaml").mkdir(exist_ok=True)
        with pytest.raises(InvalidInput, match=expected):
            load_experiment(bench.root / path, registry=bench.catalog)
    (bench.root / "latin.yaml").write_bytes(b"name: \xe9\n")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        load_experiment(bench.root / "latin.yaml", registry=bench.catalog)
    (bench.root / "big.yaml").write_bytes(b"#" * (1 << 18) + b"\n")
    with pytest.raises(InvalidInput, match="larger than 256 KiB"):
        load_experiment(bench.root / "big.yaml", registry=bench.catalog)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("config.json", None, "has no config.json"),
        ("config.json", "{", "cannot be read as JSON"),
        ("config.json", "[]", "is JSON but no object"),
        ("tokenizer.json", "\x00", "tokenizer.json cannot be read as JSON"),
        ("tokenizer_config.json", "{'a': 1}", "tokenizer_config.json cannot be read as JSON"),
    ],
)
def test_a_broken_checkpoint(bench: Any, file: str, content: str | None, expected: str) -> None:
    path: Path = bench.root / "model" / file
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    found = bench.faults(bench.minimal())
    assert len(found) == 1 and expected in found[0] and "checkpoint.path" in found[0]


def test_a_missing_plugin_alone_is_a_plugin_error(bench: Any) -> None:
    with pytest.raises(PluginError, match="did you mean 'eng'") as caught:
        bench.load(bench.minimal(rollout={"scorer": "engine"}))
    assert caught.value.faults[0].where.endswith("rollout.scorer")
    with pytest.raises(InvalidInput):
        bench.load(bench.minimal(rollout={"scorer": "engine"}, mode="x"))


def test_the_contract_is_looked_up_from_the_folder_of_the_file(bench: Any) -> None:
    bench.experiment(contract="ws1")
    assert bench.catalog.contract_roots == [bench.root]
