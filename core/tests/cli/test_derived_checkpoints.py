"""Copies made from a checkpoint: compared by declaration alone, and one knob among the others."""

from __future__ import annotations

import json
import shutil

import pytest

from xcfg.plugin import digest_checkpoint

QUIET = {"axes": {}, "cases": [], "slices": {}, "contract": "ws1"}


@pytest.fixture
def copied(write, tmp_path):
    """A copy with other weights, and the experiment with fields replaced."""

    def make(**changes):
        path = write(**{**QUIET, **changes})
        folder = tmp_path / "int8"
        shutil.copytree(tmp_path / "model", folder, dirs_exist_ok=True)
        (folder / "config.json").write_text('{"vocab_size": 64, "quantised": true}')
        return path

    return make


def _run(xcfg, path, tmp_path, *options):
    return xcfg("run", path, "--allow-fake", "--json", "--out", tmp_path / "out", *options)


def _said(done) -> str:
    return " ".join(item["message"] for item in done.document["errors"])


def test_a_copy_is_one_change_and_its_comparison_says_what_it_assumes(xcfg, copied, tmp_path) -> None:
    path = copied(derived={"int8": "int8"}, axes={"rollout.weights": [None, "int8"]})
    done = _run(xcfg, path, tmp_path).document
    own, copy = done["cases"]
    assert (own["status"], own["assumed"]) == ("pass", [])
    assert copy["changed"] == ["rollout.weights"] and copy["assumed"] == ["checkpoint_digest"]
    assert copy["status"] == "fail"  # the fake draws its weights from the content: it is another model
    shown = xcfg("show", tmp_path / "out", copy["id"], "--json").document
    held = shown["case"]["knobs"]["rollout.weights"]
    assert (held["requested"], held["observed"], held["state"]) == ("int8", "int8", "applied")
    held = xcfg("show", tmp_path / "out", own["id"], "--json").document["case"]["knobs"]["rollout.weights"]
    assert (held["observed"], held["state"]) == (digest_checkpoint(tmp_path / "model").weights, "applied")
    assert "not proven equal, assumed: checkpoint_digest" in xcfg("show", tmp_path / "out", copy["id"]).out


def test_without_a_declaration_it_is_another_model(xcfg, copied, tmp_path) -> None:
    path = copied(cases=[{"name": "silent", "rollout": {"checkpoint": {"path": "int8"}}}])
    case = _run(xcfg, path, tmp_path).document["cases"][1]
    assert case["status"] == "invalid_identity" and "checkpoint_digest differs" in case["reason"]


def test_a_case_may_declare_its_own(xcfg, copied, tmp_path) -> None:
    side = {"checkpoint": {"path": "int8", "derived_from": "model"}}
    path = copied(cases=[{"name": "one", "rollout": side}, {"name": "both", "rollout": side, "training": side}])
    one, both = _run(xcfg, path, tmp_path).document["cases"][1:]
    assert (one["status"], one["assumed"]) == ("fail", ["checkpoint_digest"])
    assert (both["status"], both["assumed"]) == ("pass", [])


def test_what_the_copys_own_folder_says_is_held_against_the_declaration(xcfg, copied, tmp_path) -> None:
    path = copied(derived={"int8": "int8"}, axes={"rollout.weights": [None, "int8"]})
    file = tmp_path / "int8" / "xcfg-base.json"
    file.write_text(json.dumps({"base": {"weights": "0" * 64}}))
    done = _run(xcfg, path, tmp_path)
    assert done.code == 2 and "made from weights 000000000000" in _said(done)
    ahead = _run(xcfg, path, tmp_path, "--dry-run")
    assert ahead.code == 2 and _said(ahead) == _said(done)
    file.write_text("{}")
    done = _run(xcfg, path, tmp_path)
    assert done.code == 2 and "it names no base" in _said(done)
    file.write_text(json.dumps({"base": {"weights": digest_checkpoint(tmp_path / "model").weights}}))
    assert _run(xcfg, path, tmp_path).code == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"axes": {"rollout.weights": [None, "int4"]}, "derived": {"int8": "int8"}}, "int4"),
        ({"baseline": {"rollout.weights": "int8"}}, "list it under derived"),
        ({"derived": {"int8": "nowhere"}}, "no model directory at"),
        ({"checkpoint": {"path": "model", "derived_from": "nowhere"}}, "no model directory at"),
    ],
)
def test_names_and_folders_that_are_not_there(xcfg, copied, changes, said) -> None:
    done = xcfg("plan", copied(**changes), "--allow-fake")
    assert done.code == 2 and said in done.err.replace("\n", " ")


def test_two_bases_of_one_copy_contradict(xcfg, copied, tmp_path) -> None:
    shutil.copytree(tmp_path / "model", tmp_path / "other")
    sides = [{"checkpoint": {"path": "int8", "derived_from": base}} for base in ("model", "other")]
    path = copied(cases=[{"name": f"c{place}", "rollout": side} for place, side in enumerate(sides)])
    done = _run(xcfg, path, tmp_path)
    assert done.code == 2 and "declared to be made from model and from other" in _said(done)


def test_explain_names_representation(xcfg, copied, tmp_path) -> None:
    path = copied(derived={"int8": "int8"}, baseline={"rollout.weights": "int8"})
    assert _run(xcfg, path, tmp_path, *[f"--profile=A{number}" for number in range(6)]).code == 1
    findings = xcfg("explain", tmp_path / "out", "--json").document["findings"]
    named = [item["class"] for item in findings if item["rule"] == "ablation_class_sufficient"]
    assert named == ["representation"]
