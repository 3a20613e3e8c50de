"""A rollout served from an int8 copy, on real engines: what ``explain`` and ``search`` name. Full tier."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/examples/quantized"
EXPERIMENT = EXAMPLES / "int8-rollout.yaml"
PROFILES = [word for name in ("A0", "A1", "A2", "A3", "A5") for word in ("--profile", name)]
pytestmark = [pytest.mark.full, pytest.mark.engine, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def ran(xcfg, tmp_path_factory):
    """(output folder, the override that names the copy, the document of the run)."""
    folder = tmp_path_factory.mktemp("int8")
    copy = folder / "copy"
    subprocess.run([sys.executable, str(EXAMPLES / "make_quantized.py"), "w8a8-int8", str(copy)], check=True)
    named = f"derived.int8={copy}"
    done = xcfg("-q", "run", EXPERIMENT, named, *PROFILES, "--out", folder / "run", "--retry", "1", "--json")
    assert done.code == 1, done.err[-2000:]
    return folder / "run", named, done.document


def test_the_copy_alone_is_outside(ran) -> None:
    _, _, document = ran
    found = {case["name"]: case for case in document["cases"]}
    assert found["A3"]["status"] == "fail" and found["A3"]["metrics"]["max_abs_dlogp"] > 0.1
    assert {found[name]["status"] for name in ("A0", "A1", "A2")} == {"pass"}
    assert "checkpoint_digest" in found["A3"]["assumed"] and "checkpoint_digest" not in found["A0"]["assumed"]


def test_explain_names_representation(ran, xcfg) -> None:
    out, _, _ = ran
    findings = xcfg("explain", out, "--json").document["findings"]
    assert ("representation", "ablation_class_sufficient") in {(item["class"], item["rule"]) for item in findings}
    assert {item["class"] for item in findings if item["rule"] == "ablation_class_sufficient"} == {"representation"}


def test_the_search_finds_the_weights(ran, xcfg) -> None:
    out, named, _ = ran
    done = xcfg("-q", "search", EXPERIMENT, named, "--out", out, "--retry", "1", "--json")
    assert done.code == 0
    assert done.document["minimal_sets"] == [["rollout.weights"]] and done.document["level"] == "L3"
