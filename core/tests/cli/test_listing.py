"""Commands that tell what is registered, and the documents they print."""

import json
from pathlib import Path

import pytest


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
    from xcfg.model.codec import structure
    from xcfg.model.plan import Plan

    document = xcfg("plan", write(), "--allow-fake", "--json", "-o", tmp_path / "plan.json").document
    plan = structure(json.loads((tmp_path / "plan.json").read_text()), Plan)
    assert [case.id for case in plan.cases] == [case["id"] for case in document["cases"]]
