"""``xcfg search`` and ``xcfg explain`` where the folder, the checkpoint, a case or an option is not as it should be."""

import json
import shutil

import pytest

from xcfg.analyzer.search.claim import Stopped
from xcfg.analyzer.search.outcome import Observed, Outcome
from xcfg.analyzer.search.problem import AlignableKnob, Options, Problem
from xcfg.analyzer.search.session import search
from xcfg.cli.search.document import ending
from xcfg.cli.search.evidence import check_gate
from xcfg.errors import InvalidInput
from xcfg.exitcodes import ExitCode
from xcfg.model.scorer import Role
from xcfg.model.status import Status

KV, ROLLOUT, TRAINING = "rollout.kv_cache_dtype", "rollout.dtype", "training.compute_dtype"


@pytest.fixture
def copied(folder, searched, tmp_path):
    """Experiment and folder of a finished search, each test's own."""
    where = tmp_path / "copied"
    shutil.copytree(folder, where)
    return where / "experiment.json", where / "out"


@pytest.fixture
def again(xcfg):
    """Search once more, with no engine to spend unless the test gives some."""

    def search(path, out, budget=0):
        return xcfg("-q", "search", path, "--allow-fake", "--out", out, "--json", "--budget", budget)

    return search


def test_results_of_another_checkpoint_are_no_results_of_this_one(again, copied) -> None:
    path, out = copied
    (path.parent / "model/config.json").write_text('{"vocab_size": 63}')
    done = again(path, out)
    assert done.code == 2 and "its checkpoint is" in done.document["errors"][0]["message"]


def test_results_of_a_changed_checkpoint_of_one_side_are_left_out(again, copied) -> None:
    path, out = copied
    shutil.copytree(path.parent / "model", path.parent / "other")
    same = {**json.loads(path.read_text()), "training": {"scorer": "fake", "checkpoint": {"path": "other"}}}
    path.write_text(json.dumps(same))
    first = again(path, out.with_name("sides"), budget=2)
    assert first.document["stopped"] == "budget" and first.document["proof"]
    (path.parent / "other/config.json").write_text('{"vocab_size": 64, "more": 1}')
    assert again(path, out.with_name("sides")).document["proof"] == []


def test_a_damaged_attempt_is_executed_again_and_told(xcfg, again, copied, searched) -> None:
    path, out = copied
    production = {KV: "float8_e4m3fn", ROLLOUT: "bfloat16"}
    asked = {path.parent: json.loads(path.read_text())["knobs"] for path in out.glob("sides/*/*/requested.json")}
    attempt = next(at for at, knobs in asked.items() if knobs.items() >= production.items())
    with (attempt / "samples.safetensors").open("ab") as stream:
        stream.write(b"x")
    explained = xcfg("explain", out, "--json", "--evidence", out.with_name("bundle"))
    assert explained.code == 6 and explained.document["status"] == "invalid_artifact"
    assert [] in explained.document["unjudged"]
    assert "was not written" in explained.err and not out.with_name("bundle").exists()
    mended = again(path, out, budget=1)
    assert mended.code == 0 and mended.document["engines"]["constructed"] == 1
    assert mended.document["proof"] == searched["proof"]


def test_a_folder_without_its_plan_is_gone_on_with(again, copied, searched) -> None:
    path, out = copied
    (out / "plan.json").unlink()
    done = again(path, out, budget=9)
    assert done.document["engines"]["constructed"] == 0 and done.document["aligned"] == searched["aligned"]


@pytest.mark.parametrize("name", ["plan.json", "search.json", "run.json"])
def test_a_damaged_document_is_named(xcfg, again, copied, name) -> None:
    path, out = copied
    for content in ("{", '{"made": "up"}'):
        (out / name).write_text(content)
        for done in (again(path, out), xcfg("explain", out, "--json")):
            assert done.code == 6
            assert all(name in item["where"] for item in done.document["errors"])


def test_a_case_that_broke_is_told_and_not_taken_for_never_executed(xcfg, experiment, tmp_path) -> None:
    path, out = experiment(rollout={"scorer": "fake_open_crash"}), tmp_path / "out"
    assert xcfg("-q", "search", path, "--allow-fake", "--out", out, "--json").code == 7
    explained = xcfg("explain", out, "--json")
    assert explained.code == 7 and explained.document["stopped"] == "no_verdict"
    assert explained.document["unjudged"] == [[]] and explained.document["next"] is None


def test_what_a_constraint_forbids_costs_nothing_and_is_never_the_next_case(xcfg, again, experiment, tmp_path) -> None:
    forbidden = [
        {"when": {KV: [None]}, "require": {name: ["float32"]}, "reason": f"{name} first"}
        for name in (ROLLOUT, TRAINING)
    ]
    path, out = experiment(constraints=forbidden), tmp_path / "out"
    done = again(path, out, budget=5).document
    assert set(done["aligned"]) == {KV, ROLLOUT, TRAINING} and done["word"] == "minimum"
    assert [KV] in done["unsupported"] and done["executions"]["run"] <= 3
    explained = xcfg("explain", out, "--json").document
    assert (explained["word"], explained["next"]) == ("minimum", None)


def test_without_production_there_is_no_row_to_judge_on(xcfg, again, experiment, tmp_path) -> None:
    out, bundle = tmp_path / "out", tmp_path / "bundle"
    assert xcfg("-q", "run", experiment(), "--allow-fake", "--out", out, "--profile", "A0").code == 0
    done = xcfg("explain", out, "--json", "--evidence", bundle)
    assert done.code == 5 and done.document["aligned"] is None and done.document["next"]["aligned"] == []
    assert "was not written" in done.err and not bundle.exists()
    begun = again(tmp_path / "experiment.json", out, budget=2).document
    rows = {len(item["aligned"]): (item["threshold"], item["within_baseline_row"]) for item in begun["proof"]}
    assert rows[3] == (rows[0][0], True) and rows[0][1] is False


ONE = Problem(knobs=[AlignableKnob(name="a", candidates=(1,), sides={Role.ROLLOUT})])


def test_a_failure_without_a_number_is_no_drift() -> None:
    claim = search(ONE, lambda trial: Outcome(status=Status.NON_FINITE))
    assert ending(claim) == ("non_finite", ExitCode.INVALID)


def test_one_pass_near_the_limit_is_no_drift() -> None:
    near = Outcome(status=Status.PASS, within=True, max_abs_dlogp=0.99, threshold=1.0)
    claim = search(ONE, lambda trial: near, Options(budget=2))
    assert claim.stopped is Stopped.BUDGET and ending(claim) == ("nothing", ExitCode.NOTHING)
    fails = Outcome(status=Status.FAIL, within=False, max_abs_dlogp=2.0, threshold=1.0)
    assert ending(search(ONE, lambda trial: fails, Options(budget=2))) == ("fail", ExitCode.DRIFT)


def test_production_without_a_verdict_is_no_pass() -> None:
    passes = Observed(aligned={"a": 1}, outcome=Outcome(status=Status.PASS))
    claim = search(ONE, lambda trial: Outcome(status=Status.TIMEOUT), outcomes=[passes])
    assert claim.aligned and ending(claim) == ("timeout", ExitCode.EXECUTION)


def test_sets_of_the_same_knobs_are_told_apart_by_their_values(again, copied) -> None:
    path, out = copied
    axes = {ROLLOUT: ["bfloat16", "float16", "float32"]}
    path.write_text(json.dumps({**json.loads(path.read_text()), "axes": axes}))
    done = again(path, out).document
    for item in done["proof"]:
        assert set(item["values"]) == set(item["aligned"])
    assert len(done["minimal_sets"]) == len({tuple(item) for item in done["minimal_sets"]})


def test_a_gate_replaces_only_a_gate(tmp_path) -> None:
    for name, content in (("notes.txt", "mine"), ("plan.json", '{"schema": "xcfg.plan/1"}')):
        (tmp_path / name).write_text(content)
        with pytest.raises(InvalidInput, match="holds no gate"):
            check_gate(tmp_path / name)
    (tmp_path / "gate.json").write_text('{"schema": "xcfg.gate-file/1"}')
    check_gate(tmp_path / "gate.json")
