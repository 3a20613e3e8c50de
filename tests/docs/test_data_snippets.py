"""Every piece of YAML, TOML or JSON that a page shows is taken by what it is written for."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from xcfg.planner.build import build_plan
from xcfg.planner.load import load_experiment
from xcfg.planner.schema import experiment_schema
from xcfg.plugin.registry import Registry, load_registry

from . import ckernel, scaffolded
from .fragments import complete
from .snippets import Snippet, everywhere

GROUPS = {"xcfg": False, "xcfg.commands": True}
"""Entry-point groups of the host, and whether an entry names an object in a module or a module."""
RECORD = {"id", "response_ids", "logprobs"}


def registry_of(block: Snippet, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """What is installed, and on two pages the kernel that it tells how to write."""
    made = {ckernel.PAGE: ckernel.install, scaffolded.KERNEL: scaffolded.install_kernel}.get(block.page)
    if made is not None:
        made(folder / "site")
        monkeypatch.syspath_prepend(folder / "site")
        return load_registry()
    return _installed()


@cache
def _installed() -> Registry:
    return load_registry()


@cache
def validator(registry: Registry) -> jsonschema.Draft202012Validator:
    """Of the JSON Schema, without the fields that a fragment leaves out."""
    return jsonschema.Draft202012Validator({**experiment_schema(registry), "required": []})


def test_a_fragment_that_names_nothing_known_is_told() -> None:
    for text in ("baseline: {rollout.dtypes: bfloat16}", "axis: {batch.size: [1]}", "baseline: {rollout.dtype: int3}"):
        with pytest.raises(jsonschema.ValidationError):
            validator(_installed()).validate(YAML(typ="safe").load(text))


@pytest.mark.parametrize("block", everywhere("yaml"), ids=lambda block: block.place)
def test_a_piece_of_an_experiment_is_sound(block: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = registry_of(block, tmp_path, monkeypatch)
    validator(registry).validate(YAML(typ="safe").load(block.text))
    loaded = load_experiment(complete(block.text, tmp_path), registry=registry)
    plan = build_plan(loaded.experiment, root=loaded.root, registry=registry)
    assert plan.cases[0].name == "baseline"
    assert plan.cases[0].rejected is None


@pytest.mark.parametrize("block", everywhere("toml"), ids=lambda block: block.place)
def test_entry_points_are_of_groups_that_are_looked_at(block: Snippet) -> None:
    project = tomllib.loads(block.text)["project"]
    assert project["entry-points"]
    for group, entries in project["entry-points"].items():
        for name, value in entries.items():
            assert (":" in value) is GROUPS[group], f"{group}: {value}"
            assert project.get("name", f"xcfg-{name}") == f"xcfg-{name}"


def is_record(block: Snippet) -> bool:
    return json.loads(block.text).keys() >= RECORD


RECORDS = [block for block in everywhere("json") if is_record(block)]
DECLARATIONS = [block for block in everywhere("json") if not is_record(block)]


@pytest.mark.parametrize("block", RECORDS, ids=lambda block: block.place)
def test_a_record_is_read(block: Snippet, xcfg, here: Path) -> None:
    record = json.loads(block.text)
    Path("rollout.jsonl").write_text(block.text + "\n")
    other = [value - 0.01 for value in record["logprobs"]]
    Path("training.jsonl").write_text(json.dumps({**record, "logprobs": other}) + "\n")
    done = xcfg("compare", "rollout.jsonl", "training.jsonl", "--dtype", "bfloat16", "--json")
    assert done.code == 0, done.out + done.err
    assert done.document["active_tokens"] == len(record["response_ids"])
    assert done.document["metrics"]["max_abs_dlogp"] == pytest.approx(0.01, rel=1e-5)


@pytest.mark.parametrize("block", DECLARATIONS, ids=lambda block: block.place)
def test_a_declared_base_is_held_against_the_checkpoint(block: Snippet, xcfg, here: Path) -> None:
    """The digest on the page is a placeholder, so the run is refused, and says what it read."""
    assert json.loads(block.text)["schema"] == "xcfg.base/1"
    fakes = {"rollout": {"scorer": "fake"}, "training": {"scorer": "fake"}}
    text = "derived: {int8: qwen3-tiny-w8a8}\nbaseline: {rollout.weights: int8}\n"
    experiment = complete(text, here, **fakes)
    (experiment.parent / "qwen3-tiny-w8a8/xcfg-base.json").write_text(block.text)
    done = xcfg("run", experiment, "--allow-fake")
    assert done.code == 2
    assert "made from weights DIGEST" in done.err


def test_the_answer_on_the_page_is_the_one_that_is_printed(xcfg, here: Path) -> None:
    """Three tokens of one sequence and one of another; training is 0.09 below at the second."""
    (shown,) = [block for block in everywhere("text") if block.page.name == "compare-recorded.md"]
    rollout = [("a", [3, 4, 5], [-0.1, -0.2, -0.3]), ("b", [6], [-0.4])]
    for name, drift in (("rollout", 0.0), ("training", -0.09)):
        rows = [(key, tokens, [*values[:1], values[1] + drift, *values[2:]] if key == "a" else values)
                for key, tokens, values in rollout]  # fmt: skip
        lines = [json.dumps({"id": key, "response_ids": ids, "logprobs": values}) for key, ids, values in rows]
        Path(f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    done = xcfg("compare", "rollout.jsonl", "training.jsonl", "--dtype", "bfloat16")
    assert done.code == 1
    for line in shown.text.splitlines():
        assert line in done.out
