"""Bad input through the command line: a clear sentence, the documented code, nothing written."""

import json
from pathlib import Path
from typing import Any

import pytest


def with_baseline(**knobs: Any) -> dict[str, Any]:
    return {"baseline": {"rollout.dtype": "bfloat16", "training.compute_dtype": "bfloat16", **knobs}}


CASES = {
    "unknown knob": (with_baseline(**{"rollout.dtyp": "float32"}), "did you mean 'rollout.dtype'"),
    "out of domain": (with_baseline(**{"batch.size": 0}), "batch.size"),
    "wrong type": (with_baseline(**{"execution.prefix_cache": "perhaps"}), "prefix_cache"),
    "unknown field": ({"axs": {}}, "did you mean 'axes'"),
    "a limit": ({"max_abs_dlogp": 1.0}, "contract"),
    "an option": ({"timeout": 3}, "xcfg run"),
    "missing checkpoint": ({"checkpoint": {"path": "nowhere"}}, "nowhere"),
    "unknown scorer": ({"training": {"scorer": "fak"}}, "fake"),
    "scorer of a missing plugin": ({"training": {"scorer": "megatron"}}, "pip install xcfg-megatron"),
    "empty axis": ({"axes": {"batch.size": []}}, "batch.size"),
    "unknown contract": ({"contract": "ws9"}, "ws1"),
    "missing prompts": ({"tokens": {"sample": {"prompts": "none.jsonl"}}}, "none.jsonl"),
    "no tokens": ({"tokens": {}}, "sample"),
}


@pytest.mark.parametrize("name", CASES)
def test_fault_in_the_experiment(xcfg, write, uninstalled, name: str) -> None:
    uninstalled("megatron")
    changes, said = CASES[name]
    experiment = write(**changes)
    out = experiment.parent / "out"
    done = xcfg("run", experiment, "--allow-fake", "--out", out, "--json")
    assert done.code in (2, 4), done
    assert done.document["schema"] == "xcfg.error/1" and done.document["code"] == done.code
    assert said in json.dumps(done.document, ensure_ascii=False)
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"name": "a", "name": "b"}', "twice"),
        ('{"baseline": {"sampling.temperature": NaN}}', "finite"),
        ('{"baseline": {"sampling.temperature": 1e400}}', "finite"),
        ("[1, 2]", "mapping"),
        ("", "JSON"),
        ('{"name": ', "JSON"),
    ],
)
def test_unreadable_json(xcfg, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "e.json"
    path.write_text(text)
    done = xcfg("plan", path)
    assert done.code == 2 and said in done.err and "e.json" in done.err


def test_every_fault_is_told_at_once(xcfg, write) -> None:
    experiment = write(axs={}, checkpoint={"path": "nowhere"}, baseline={"rollout.dtyp": 1})
    errors = xcfg("plan", experiment, "--allow-fake", "--json").document["errors"]
    assert len(errors) >= 3


def test_a_fake_needs_its_option(xcfg, write) -> None:
    done = xcfg("plan", write())
    assert done.code == 2 and "--allow-fake" in done.err


def test_masked_everywhere_is_zero_active_tokens(xcfg, write) -> None:
    experiment = write(axes={}, cases=[], slices={}, tokens={"recorded": "t.jsonl"})
    record = {"id": "a", "prompt_ids": [1], "response_ids": [2, 3], "mask": [False, False]}
    (experiment.parent / "t.jsonl").write_text(json.dumps(record) + "\n")
    done = xcfg("run", experiment, "--allow-fake", "--out", experiment.parent / "out", "--json")
    assert (done.document["status"], done.code) == ("zero_active_tokens", 6)


def test_no_file_unknown_slice_too_many_cases_unknown_override(xcfg, write, tmp_path: Path) -> None:
    assert xcfg("plan", tmp_path / "none.yaml").code == 2
    experiment = write()
    assert xcfg("plan", experiment, "--allow-fake", "--slice", "fp3").code == 2
    done = xcfg("plan", experiment, "--allow-fake", "--max-cases", 2)
    assert done.code == 2 and "--max-cases" in done.err
    assert xcfg("plan", experiment, "axes.rollout.dtipe=[float32]", "--allow-fake").code == 2
    assert xcfg("plan", experiment, "--allow-fake", "--filter", "batch.size=3").code in (2, 5)


def test_usage_errors_are_2_and_json_stays_json(xcfg) -> None:
    assert xcfg("rn").code == 2
    assert xcfg("run").code == 2
    done = xcfg("plan", "--frobnicate", "--json")
    assert done.code == 2 and done.document["schema"] == "xcfg.error/1"


def test_reading_a_folder_that_holds_no_run(xcfg, tmp_path: Path) -> None:
    for arguments in (("report", tmp_path), ("show", tmp_path, "a"), ("cube", "rebuild", tmp_path)):
        done = xcfg(*arguments)
        assert done.code == 2 and str(tmp_path) in done.err
    assert xcfg("cube", "query", tmp_path).code in (2, 6)
