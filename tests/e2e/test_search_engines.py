"""The search on real engines: bf16 vLLM at TP=2 against bf16 FSDP2, brought into the bfloat16 row. Full tier."""

import json
from math import comb
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
EXPERIMENT = EXAMPLES / "qwen3-tiny-search.yaml"
pytestmark = [pytest.mark.full, pytest.mark.engine, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def searched(xcfg, tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    done = xcfg("search", EXPERIMENT, "--out", folder / "run", "--gate", folder / "gate.json", "--json")
    assert done.code == 0, done.out[-2000:] + done.err[-4000:]
    return folder, done.document


def test_the_set_passes_and_every_part_of_it_fails(searched, xcfg, tmp_path) -> None:
    """Executed again as explicit cases, in another folder, without the search."""
    folder, document = searched
    assert document["verified"] and document["level"] in ("L3", "L4")
    gate = json.loads((folder / "gate.json").read_text())
    values, knobs = gate["values"], sorted(gate["aligned"])
    cases = [{"name": "answer", "set": values}]
    for name in knobs if len(knobs) > 1 else ():
        rest = {knob: value for other in knobs if other != name for knob, value in gate["aligned"][other].items()}
        cases.append({"name": f"without {name}", "set": rest})
    override = f"cases={json.dumps(cases)}"
    done = xcfg("-q", "run", EXPERIMENT, override, "axes={}", "--out", tmp_path / "again", "--json")
    found = {case["name"]: case["within_baseline_row"] for case in done.document["cases"]}
    assert found.pop("answer") is True and found.pop("baseline") is False
    assert len(found) == len(cases) - 1 and not any(found.values())


def test_it_takes_fewer_engines_than_one_at_a_time_and_pairs(searched) -> None:
    """Counted with every side run shared, as `xcfg run` would: a pair across the sides takes no engine of its own."""
    _, document = searched
    knobs = {*document["aligned"], *document["still_different"]}
    sides = [
        knobs & {"rollout.dtype", "rollout.tensor_parallel_size", "execution.prefix_cache"},
        {name for name in knobs if name.startswith("training.")},
    ]
    by_hand = sum(1 + len(side) + comb(len(side), 2) for side in sides)
    assert [len(side) for side in sides] == [3, 5] and by_hand == 23
    assert document["engines"]["constructed"] < by_hand


def test_the_gate_holds_the_set_what_stays_and_what_proves_it(searched) -> None:
    folder, document = searched
    gate = json.loads((folder / "gate.json").read_text())
    assert gate["fake"] is False and sorted(gate["aligned"]) == sorted(document["aligned"])
    assert sorted(gate["still_different"]) == sorted(document["still_different"])
    cases = gate["cases"]
    assert cases["production"]["within_baseline_row"] is False
    assert cases["answer"]["within_baseline_row"] is True and cases["reference"]["within_baseline_row"] is True
    assert cases["unrelated"]
    assert gate["cost"]["engines_constructed"] == document["engines"]["constructed"]
    assert gate["cost"]["answer"]["slowdown"] > 0 and gate["cost"]["answer"]["memory"] > 0
    for side in ("rollout", "training"):
        for name, knob in gate["provenance"]["answer"][side]["knobs"].items():
            assert knob["state"] in ("applied", "inapplicable"), name


def test_what_is_on_disk_is_not_executed_again(searched, xcfg) -> None:
    folder, document = searched
    again = xcfg("-q", "search", EXPERIMENT, "--out", folder / "run", "--json").document
    assert again["engines"]["constructed"] == 0 and again["aligned"] == document["aligned"]
