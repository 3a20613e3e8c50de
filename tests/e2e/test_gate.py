"""The gate that a search wrote for bf16 vLLM at TP=2 against bf16 FSDP2, on both engines."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
EXPERIMENT, GATE = EXAMPLES / "qwen3-tiny-search.yaml", EXAMPLES / "qwen3-tiny-gate.json"
pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "left_out", [("--skip-unrelated",), pytest.param((), marks=pytest.mark.full)], ids=["core", "all"]
)
def test_what_the_search_pinned_holds(xcfg, tmp_path, left_out) -> None:
    pinned = json.loads(GATE.read_text())
    assert pinned["fake"] is False
    junit = tmp_path / "gate.xml"
    options = (*left_out, "--out", tmp_path / "run", "--retry", "1", "--junit", junit, "--json")
    done = xcfg("-q", "gate", EXPERIMENT, "--gate", GATE, *options)
    assert done.code == 0, done.out[-3000:] + done.err[-3000:]
    found = done.document
    assert found["fake"] is False and found["engines"]["constructed"] == found["engines"]["distinct"]
    roles = {check["role"]: check for check in found["checks"]}
    assert roles["answer"]["max_abs_dlogp"] <= roles["answer"]["threshold"] < roles["production"]["max_abs_dlogp"]
    parts = [check for check in found["checks"] if check["role"] == "part"]
    assert sorted(tuple(check["aligned"]) for check in parts) == [("rollout.dtype",), ("training.compute_dtype",)]
    assert all(check["max_abs_dlogp"] > check["threshold"] for check in parts)
    for case in found["cases"]:
        states = {side["state"] for knob in case["knobs"].values() for side in knob["sides"].values()}
        assert states <= {"applied", "inapplicable"}
    suite = ElementTree.fromstring(junit.read_bytes()).find("testsuite")
    assert (int(suite.get("tests")), suite.get("failures"), suite.get("errors")) == (len(found["checks"]), "0", "0")
