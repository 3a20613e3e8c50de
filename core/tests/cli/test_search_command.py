"""``xcfg search`` on the fake scorers, against executing every set and looking for the smallest by hand."""

import json
from itertools import chain, combinations, pairwise

import pytest

from .own_contract import write_contract
from .searched import KNOBS, SETTINGS, command
from .small_experiment import EXPERIMENT


def subsets(names):
    names = sorted(names)
    return [frozenset(found) for found in chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))]


@pytest.fixture(scope="module")
def measured(folder):
    """max |d| by set of aligned knobs: every set executed as an explicit case."""
    names = {"+".join(sorted(chosen)): chosen for chosen in subsets(KNOBS)[1:]}
    cases = [{"name": name, "set": {knob: KNOBS[knob][1] for knob in chosen}} for name, chosen in names.items()]
    path = folder / "every.json"
    path.write_text(json.dumps({**EXPERIMENT, **SETTINGS, "cases": cases}))
    done = command("run", path, "--allow-fake", "--out", folder / "every")
    names["baseline"] = frozenset()
    return {names[case["name"]]: case["metrics"]["max_abs_dlogp"] for case in done["cases"]}


def smallest(measured, limit):
    """The sets that pass and of which no part does."""
    passing = [chosen for chosen, value in measured.items() if value <= limit]
    return {chosen for chosen in passing if not any(other < chosen for other in passing)}


def test_the_answer_is_the_smallest_of_all_sets(xcfg, experiment, measured, tmp_path) -> None:
    values = sorted(measured.values())
    limits = [(low + high) / 2 for low, high in pairwise(values) if high > 1.25 * low]
    assert len(measured) == 8 and len(limits) >= 2, values
    for number, limit in enumerate(limits):
        path = experiment(contract=write_contract(tmp_path, limit))
        done = xcfg("-q", "search", path, "--allow-fake", "--out", tmp_path / f"search{number}", "--json")
        assert done.code == 0
        found = done.document
        oracle = smallest(measured, limit)
        assert {frozenset(item) for item in found["minimal_sets"]} <= oracle
        assert (
            frozenset(found["aligned"]) in oracle and found["verified"] and found["word"] in ("irreducible", "minimum")
        )
        assert set(found["still_different"]) == set(KNOBS) - set(found["aligned"])
        assert found["level"] == {1: "L3", 2: "L4", 3: "L5"}[len(found["aligned"])]
        for item in found["proof"]:
            assert item["max_abs_dlogp"] == measured[frozenset(item["aligned"])]
            assert item["within_baseline_row"] is (item["max_abs_dlogp"] <= limit)
        assert found["executions"]["exhaustive_would_be"] == 8
        assert found["engines"]["constructed"] == found["executions"]["constructions"] <= 6


def test_what_is_on_disk_is_not_executed_again(xcfg, searched, folder) -> None:
    path, out = folder / "experiment.json", folder / "out"
    again = xcfg("-q", "search", path, "--allow-fake", "--out", out, "--json").document
    assert searched["engines"]["constructed"] >= 4 and again["engines"]["constructed"] == 0
    assert again["executions"]["run"] == 0
    same = ("level", "word", "minimal_sets", "aligned", "still_different", "verified", "proof", "untried")
    assert {name: again[name] for name in same} == {name: searched[name] for name in same}
    explained = xcfg("explain", out, "--json")
    assert explained.code == 0 and explained.document["minimal_sets"] == searched["minimal_sets"]
    assert explained.document["schema"] == "xcfg.explain/1" and explained.document["fake"] is True
    assert xcfg("cube", "query", out, "--json").document["rows"]


def test_a_search_that_was_cut_off_by_its_budget_goes_on(xcfg, searched, experiment, tmp_path) -> None:
    nothing = xcfg("-q", "search", experiment(), "--allow-fake", "--out", tmp_path / "none", "--json", "--budget", "0")
    assert nothing.code == 5 and nothing.document["stopped"] == "budget"
    assert not (tmp_path / "none").exists()
    out, total, stops = tmp_path / "steps", 0, []
    for _ in range(20):
        step = xcfg("-q", "search", experiment(), "--allow-fake", "--out", out, "--json", "--budget", "2").document
        assert step["engines"]["constructed"] <= 2
        total += step["engines"]["constructed"]
        stops.append(step["stopped"])
        if step["stopped"] != "budget":
            break
    assert stops[0] == "budget" and stops[-1] == "proven"
    assert total == searched["engines"]["constructed"]
    assert (step["aligned"], step["proof"]) == (searched["aligned"], searched["proof"])


def test_what_other_code_made_is_explained_and_not_searched_on(xcfg, searched, folder, monkeypatch) -> None:
    path, out = folder / "experiment.json", folder / "out"
    monkeypatch.setattr("xcfg.runner.acceptance.difference", lambda former, now: "xcfg-vllm 1 is now 2")
    explained = xcfg("explain", out, "--json").document
    assert explained["minimal_sets"] == searched["minimal_sets"]
    stopped = xcfg("-q", "search", path, "--allow-fake", "--out", out, "--json", "--budget", "0")
    assert stopped.code == 5 and stopped.document["proof"] == []


def test_the_gate_pins_what_was_executed(searched, folder, measured) -> None:
    pinned = json.loads((folder / "gate.json").read_text())
    answer = frozenset(searched["aligned"])
    assert pinned["schema"] == "xcfg.gate-file/1" and pinned["fake"] is True
    assert pinned["values"] == {name: KNOBS[name][1] for name in answer}
    assert pinned["still_different"] == {name: {name: KNOBS[name][0]} for name in set(KNOBS) - answer}
    cases = pinned["cases"]
    for name, chosen in (("production", frozenset()), ("answer", answer), ("reference", frozenset(KNOBS))):
        assert frozenset(cases[name]["aligned"]) == chosen
        assert cases[name]["max_abs_dlogp"] == measured[chosen]
        assert cases[name]["within_baseline_row"] is (chosen != frozenset())
    assert all(frozenset(item["aligned"]) < answer for item in cases["parts"])
    unrelated = {name for item in cases["unrelated"] for name in item["aligned"]} - answer
    assert unrelated | set(pinned["unrelated_not_executed"]) == set(KNOBS) - answer
    assert pinned["cost"]["engines_constructed"] == searched["engines"]["constructed"]
    read = pinned["provenance"]["answer"]["rollout"]["knobs"]["rollout.dtype"]
    assert read["observed"] == read["requested"]


def test_evidence_holds_the_documents_of_its_cases(xcfg, searched, folder, tmp_path) -> None:
    bundle = tmp_path / "bundle"
    assert xcfg("explain", folder / "out", "--evidence", bundle, "--json").code == 0
    cases = json.loads((bundle / "evidence.json").read_text())["cases"]
    named = [cases["production"], cases["answer"], cases["reference"], *cases["parts"], *cases["unrelated"]]
    assert {path.stem for path in (bundle / "cases").iterdir()} == {item["id"] for item in named}
    for item in named:
        document = json.loads((bundle / "cases" / f"{item['id']}.json").read_text())
        assert document["metrics"]["max_abs_dlogp"] == item["max_abs_dlogp"]
    again = xcfg("explain", folder / "out", "--evidence", bundle)
    assert again.code == 2 and "something already" in again.err


def test_a_reference_that_fails_is_said_first(xcfg, experiment, tmp_path) -> None:
    name = "rollout.kv_cache_dtype"
    wrong = experiment(aligned={name: {name: "float8_e5m2"}})
    gate = tmp_path / "gate.json"
    done = xcfg("-q", "search", wrong, "--allow-fake", "--out", tmp_path / "out", "--json", "--gate", gate)
    assert done.code == 1 and done.document["status"] == "fail"
    assert done.document["stopped"] == "reference_fails" and done.document["level"] == "L5"
    assert done.document["aligned"] is None and not done.document["verified"]
    assert not gate.exists() and "was not written" in done.err
    assert xcfg("explain", tmp_path / "out", "--json").code == 1


def test_a_verdict_near_the_limit_is_repeated(xcfg, experiment, measured, tmp_path) -> None:
    path = experiment(contract=write_contract(tmp_path, 0.99 * measured[frozenset()]))
    out = tmp_path / "out"
    first = xcfg("-q", "search", path, "--allow-fake", "--out", out, "--json", "--budget", "6").document
    log = json.loads((out / "search.json").read_text())["executions"]
    attempts = [(item["rollout_attempt"], item["training_attempt"]) for item in log]
    assert attempts == [(1, 1), (2, 2), (3, 3)] and len({item["case"] for item in log}) == 1
    assert [item["max_abs_dlogp"] for item in first["proof"]] == [measured[frozenset()]] * 3
    again = xcfg("-q", "search", path, "--allow-fake", "--out", out, "--json", "--budget", "0").document
    assert again["engines"]["constructed"] == 0 and again["proof"] == first["proof"]


def test_production_that_passes_needs_nothing(xcfg, experiment, tmp_path) -> None:
    path = experiment(contract=write_contract(tmp_path, 5.0))
    done = xcfg("-q", "search", path, "--allow-fake", "--out", tmp_path / "out", "--json")
    assert done.code == 0 and done.document["level"] == "L1"
    assert done.document["aligned"] == {} and done.document["engines"]["constructed"] == 2


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--gate", "nowhere/gate.json"], 2, "no folder nowhere"),
        (["--prove", "sufficient"], 2, "'sufficient' is not one of"),
        (["--budget", "-1"], 2, "-1 is not in the range"),
        ([], 2, "allowed only with --allow-fake"),
    ],
)
def test_bad_input(xcfg, experiment, tmp_path, options, code, said) -> None:
    fake = ["--allow-fake"] if options else []
    done = xcfg("search", experiment(), *options, *fake, "--out", tmp_path / "out")
    assert done.code == code and said in done.err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_nothing_to_align_is_said(xcfg, write, tmp_path) -> None:
    aligned = {
        "rollout.dtype": "float32", "training.compute_dtype": "float32", "batch.size": 1,
        "rollout.scoring_path": "prefill", "rollout.enforce_eager": True, "training.output_dtype": "float32",
        "training.reduce_dtype": "float32",
    }  # fmt: skip
    done = xcfg(
        "search", write(baseline=aligned, axes={}, cases=[], slices={}), "--allow-fake", "--out", tmp_path / "o"
    )
    assert done.code == 2 and "differs from its aligned reference in no knob" in done.err


def test_explain_of_a_run_names_the_next_case(xcfg, experiment, tmp_path) -> None:
    out = tmp_path / "out"
    assert xcfg("-q", "run", experiment(), "--allow-fake", "--out", out).code == 1
    done = xcfg("explain", out, "--json")
    assert done.code == 1 and done.document["aligned"] is None
    assert done.document["next"]["purpose"] == "reference"
    assert set(done.document["next"]["aligned"]) == set(KNOBS)
    assert [item["rule"] for item in done.document["findings"]] == ["infrastructure_not_algorithm"]
    text = xcfg("explain", out).out
    assert "no alignment that passes is known" in text and "next case that would tell more" in text
    nothing = xcfg("explain", tmp_path)
    assert nothing.code == 2 and "holds no run" in nothing.err
