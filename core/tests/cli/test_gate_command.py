"""``xcfg gate`` on what a search pinned, and on gates that say other things of the same cases."""

from __future__ import annotations

import json

import pytest

from xcfg.analyzer.search.outcome import Outcome
from xcfg.cli.gate.checks import Check, ending, expected
from xcfg.cli.gate.file import PinnedCase
from xcfg.model.status import Status


@pytest.fixture
def pinned(searched, folder):
    assert searched["status"] == "pass"
    return json.loads((folder / "gate.json").read_text())


@pytest.fixture
def gated(xcfg, searched, folder, tmp_path):
    """Runs the gate ``content`` on what the search executed; each call has a file of its own."""

    def call(content, *arguments, path=folder / "experiment.json", out=folder / "out"):
        file = tmp_path / "gate.json"
        file.write_text(json.dumps(content))
        return xcfg("-q", "gate", path, "--gate", file, "--out", out, "--allow-fake", "--json", *arguments)

    return call


def roles(document):
    return {check["role"]: check for check in document["checks"]}


def test_what_was_pinned_holds(gated, pinned, searched) -> None:
    done = gated(pinned)
    assert done.code == 0, done.out + done.err
    found = done.document
    assert (found["schema"], found["status"], found["fake"]) == ("xcfg.gate/1", "pass", True)
    assert found["aligned"] == sorted(searched["aligned"])
    assert set(found["still_different"]) == set(searched["still_different"])
    assert found["engines"]["constructed"] == 0
    executed = {item["case"]: item for item in searched["proof"]}
    for check in found["checks"]:
        assert check["held"] and check["advice"] == ""
        if check["role"] in ("answer", "production", "reference", "part"):
            assert check["max_abs_dlogp"] == executed[check["case"]]["max_abs_dlogp"]
        assert check["within_baseline_row"] is (check["max_abs_dlogp"] <= check["threshold"])
    told = roles(found)
    assert told["production"]["aligned"] == [] and told["production"]["expected"] is False
    assert told["answer"]["aligned"] == found["aligned"] and told["answer"]["expected"] is True
    assert len(found["cases"]) == len(found["checks"]) == len({check["case"] for check in found["checks"]})


def test_unrelated_cases_may_be_left_out(gated, pinned) -> None:
    done = gated(pinned, "--skip-unrelated")
    whole = gated(pinned)
    assert done.code == whole.code == 0
    kept = [check for check in whole.document["checks"] if check["role"] != "unrelated"]
    assert [check["case"] for check in done.document["checks"]] == [check["case"] for check in kept]
    assert len(kept) < len(whole.document["checks"])


def test_a_fresh_folder_executes_the_pinned_cases_alone(gated, pinned, tmp_path, xcfg) -> None:
    out = tmp_path / "fresh"
    done = gated(pinned, out=out)
    assert done.code == 0 and done.document["engines"]["constructed"] > 0
    rows = xcfg("cube", "query", out, "--json").document["rows"]
    assert len(rows) == len(done.document["checks"])


def test_a_pinned_alignment_that_no_longer_passes(gated, pinned) -> None:
    """The gate says that production passes: as though the engines had passed when it was written."""
    cases = pinned["cases"]
    cases["answer"] = {**cases["production"], "within_baseline_row": True}
    cases["parts"], cases["unrelated"] = [], []
    done = gated({**pinned, "cases": cases})
    assert done.code == 1
    assert done.document["status"] == "fail"
    answer = roles(done.document)["answer"]
    assert (answer["held"], answer["within_baseline_row"]) == (False, False)
    assert "no longer passes" in answer["advice"]


def test_a_smaller_set_that_suffices_now(gated, pinned) -> None:
    """The gate says that the answer is a part of a larger one."""
    cases = pinned["cases"]
    cases["parts"], cases["answer"] = [{**cases["answer"], "within_baseline_row": False}], cases["reference"]
    cases["unrelated"] = []
    done = gated({**pinned, "cases": cases})
    assert done.code == 1
    part = roles(done.document)["part"]
    assert (part["expected"], part["within_baseline_row"], part["held"]) == (False, True, False)
    assert "a part of the pinned alignment passes" in part["advice"]
    assert roles(done.document)["answer"]["held"]


def test_a_knob_that_changes_the_verdict_now(gated, pinned) -> None:
    cases = pinned["cases"]
    assert cases["unrelated"]
    turned = {**cases["unrelated"][0], "within_baseline_row": not cases["unrelated"][0]["within_baseline_row"]}
    done = gated({**pinned, "cases": {**cases, "unrelated": [turned]}})
    assert done.code == 1
    assert "a knob that changed nothing" in roles(done.document)["unrelated"]["advice"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch.size": 2}, "batch.size is not among the differences that the gate leaves on"),
        ({"rollout.dtype": "float16"}, "a value of the experiment changed"),
        ({"rollout.dtype": "float32"}, "is not a knob that this experiment can align"),
    ],
)
def test_an_experiment_that_is_not_the_pinned_one(gated, pinned, folder, tmp_path, changes, words) -> None:
    given = [f"baseline.{knob}={json.dumps(value)}" for knob, value in changes.items()]
    done = gated(pinned, *given, out=tmp_path / "other")
    assert done.code == 2
    assert words in json.loads(done.out)["errors"][0]["message"]
    assert not (tmp_path / "other").exists()


def test_another_checkpoint_contract_or_token_batch_is_another_identity(gated, pinned, tmp_path) -> None:
    other = {**pinned, "identity": {**pinned["identity"], "checkpoint": "0" * 64}}
    done = gated(other, out=tmp_path / "other")
    assert done.code == 6
    assert done.document["status"] == "invalid_identity"
    assert done.document["reason"].startswith(f"checkpoint is {'0' * 64}, not ")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"schema": "xcfg.gate-file/0"}, "expected 'xcfg.gate-file/1'"),
        ({"schema": "xcfg.run/1"}, "expected 'xcfg.gate-file/1'"),
        ([], "expected 'xcfg.gate-file/1'"),
        ({"schema": "xcfg.gate-file/1"}, "not a whole gate"),
    ],
)
def test_files_that_are_no_gate(gated, content, words) -> None:
    done = gated(content)
    assert done.code == 2
    assert words in json.loads(done.out)["errors"][0]["message"]


def test_no_file(xcfg, folder) -> None:
    done = xcfg("gate", folder / "experiment.json", "--gate", folder / "nowhere.json", "--json")
    assert done.code == 2
    assert "no gate file" in done.document["errors"][0]["message"]


def _check(role, within, status):
    case = PinnedCase(role=role, id=role, sets={}, within=role in ("answer", "unrelated"))
    outcome = Outcome(status=status, within=within, max_abs_dlogp=None if within is None else 0.1, threshold=0.02)
    return Check(case=case, expected=expected(case), outcome=outcome)


def test_what_kept_a_case_from_a_number_is_told_apart_from_drift() -> None:
    """Exit codes as documented: 7 before 6 before 8 before 1."""
    held = [_check("answer", True, Status.PASS), _check("production", False, Status.FAIL)]
    drift = _check("part", True, Status.PASS)
    broken = _check("reference", None, Status.LAUNCH_ERROR)
    invalid = _check("production", None, Status.NON_FINITE)
    unsupported = _check("unrelated", None, Status.UNSUPPORTED)
    assert ending(held) == ("pass", 0)
    assert ending([*held, drift]) == ("fail", 1)
    assert ending([*held, drift, unsupported]) == ("unsupported", 8)
    assert ending([*held, drift, unsupported, invalid]) == ("non_finite", 6)
    assert ending([*held, drift, unsupported, invalid, broken]) == ("launch_error", 7)
    assert not broken.held and not invalid.held and not unsupported.held


def test_on_a_terminal(xcfg, searched, folder) -> None:
    gate = folder / "gate.json"
    done = xcfg("-q", "gate", folder / "experiment.json", "--gate", gate, "--out", folder / "out", "--allow-fake")
    assert done.code == 0
    count = len(json.loads(gate.read_text())["cases"]["parts"])
    assert "pinned cases held" in done.out and "has to be" in done.out
    assert sum(" part " in line for line in done.out.splitlines()) == count
