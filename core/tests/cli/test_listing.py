"""Commands that tell what is registered, and the documents they print."""

import json
from pathlib import Path

import pytest

from xcfg.model.codec import structure


@pytest.mark.parametrize("kind", ["knobs", "scorers", "backends", "contracts"])
def test_list_names_the_distribution_of_every_entry(xcfg, kind: str) -> None:
    document = xcfg(kind, "list", "--json").document
    assert document["schema"] == f"xcfg.{kind}/1"
    assert all(entry["distribution"] for entry in document[kind])


def test_show_one_knob(xcfg) -> None:
    knob = xcfg("knobs", "show", "rollout.dtype", "--json").document["knob"]
    assert knob["domain"]["aliases"]["bf16"] == "bfloat16"
    done = xcfg("knobs", "show", "rollout.dtyp")
    assert done.code == 2 and "rollout.dtype" in done.err


def test_plugins_list_and_check(xcfg) -> None:
    rows = xcfg("plugins", "list", "--json").document["plugins"]
    assert {"name", "distribution", "version", "state", "error"} <= set(rows[0])
    assert xcfg("plugins", "check").code == 0


def test_doctor_and_schema_print_one_document(xcfg) -> None:
    assert xcfg("doctor", "--json").document["machine"]["cores"] >= 1
    schema = xcfg("schema").document
    assert schema["properties"]["axes"] and schema["additionalProperties"] is False


def test_init_writes_an_experiment_and_keeps_what_is_there(xcfg, write, tmp_path: Path) -> None:
    write()
    target = tmp_path / "mine.yaml"
    assert xcfg("init", tmp_path / "model", "-o", target).code == 0
    text = target.read_text()
    assert text.count("#") > 5
    assert xcfg("init", tmp_path / "model", "-o", target).code == 2
    assert target.read_text() == text
    assert xcfg("init", tmp_path / "nowhere", "-o", tmp_path / "x.yaml").code == 2


def test_plan_document(xcfg, write) -> None:
    document = xcfg("plan", write(), "--allow-fake", "--json").document
    assert document["counts"] == {"planned": 4, "rejected": 0}
    assert [case["changed"] for case in document["cases"]] == [
        [],
        ["rollout.dtype"],
        ["batch.size"],
        ["rollout.dtype", "training.compute_dtype"],
    ]


def test_plan_written_to_a_file_reloads(xcfg, write, tmp_path: Path) -> None:
    from xcfg.model.plan import Plan

    document = xcfg("plan", write(), "--allow-fake", "--json", "-o", tmp_path / "plan.json").document
    plan = structure(json.loads((tmp_path / "plan.json").read_text()), Plan)
    assert [case.id for case in plan.cases] == [case["id"] for case in document["cases"]]


def test_an_id_that_is_not_there_names_what_would_bring_it(xcfg, uninstalled) -> None:
    uninstalled("megatron")
    done = xcfg("scorers", "show", "megatron", "--json")
    assert done.code == done.document["code"] == 4
    assert "pip install xcfg-megatron" in done.document["errors"][0]["hint"]
    assert xcfg("backends", "show", "fake_exat").code == 2
    shown = [
        xcfg("backends", "show", name, "--json").document["backend"]
        for name in ("selected_logprob/fake_exact", "fake_exact")
    ]
    assert shown[0] == shown[1] and shown[0]["id"] == "selected_logprob/fake_exact"
    assert shown[0]["determinism"] and shown[0]["distribution"] == "xcfg"


def test_descriptors_reload_and_carry_a_status(xcfg) -> None:
    from xcfg.plugin.describe import Description

    document = xcfg("plugins", "describe", "--json").document
    assert document.pop("status") == "pass"
    assert structure(document, Description).plugins


def test_explain_adds_to_the_plan_document(xcfg, write) -> None:
    document = xcfg("plan", write(), "--allow-fake", "--explain", "fp32-both", "--json").document
    assert document["counts"]["planned"] == len(document["cases"]) == 4
    assert document["case"]["rollout"]["knobs"]["rollout.dtype"] == "float32"
    assert document["fake"] is True


def test_a_rejected_case_gives_its_reason_and_strict_makes_it_an_error(xcfg, write) -> None:
    experiment = write(axes={"training.world_size": [2]}, cases=[], slices={})
    rejected = xcfg("plan", experiment, "--allow-fake", "--json").document["cases"][1]
    assert "one rank" in rejected["rejected"] and rejected["kind"] == "unsupported"
    assert xcfg("plan", experiment, "--allow-fake", "--strict").code == 8
    assert xcfg("run", experiment, "--allow-fake", "--strict", "--dry-run").code == 8
    assert xcfg("run", experiment, "--allow-fake", "--dry-run", "--json").document["schema"] == "xcfg.plan/1"


def test_every_option_that_a_refused_field_hints_at_exists(xcfg, write) -> None:
    from xcfg.cli.commands.run import run
    from xcfg.planner.problem import Problem
    from xcfg.planner.refused import explained

    options = {name for item in run.params for name in (*item.opts, *item.secondary_opts)}
    names = (
        "timeout",
        "resume",
        "jobs",
        "workers",
        "retry",
        "out",
        "repeat",
        "fail_fast",
        "strict",
        "slice",
        "max_cases",
        "executor",
        "start_timeout",
        "rollout_python",
        "interpreter",
    )
    for name in names:
        problem = explained(Problem(path=(name,), message="unknown", at_key=True))
        hinted = problem.hint.removeprefix("give ").removesuffix(" on the command line").replace(" or ", "/").split("/")
        assert set(hinted) <= options, name


@pytest.mark.parametrize("name", ["../outside", "/tmp/x", "..", "a/b"])
def test_a_name_that_is_no_folder_is_refused(xcfg, write, name: str) -> None:
    done = xcfg("plan", write(name=name), "--allow-fake")
    assert done.code == 2 and "name" in done.err
