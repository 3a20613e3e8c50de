"""The examples for larger machines: they plan here with exactly these numbers of cases, and say that they only plan."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
REFERENCE = EXAMPLES.parent / "reference/experiment.md"

CASES = {
    "plan-only-qwen3-0.6b-smoke.yaml": 5,
    "plan-only-qwen3-8b-tp2-fsdp.yaml": 10,
    "plan-only-qwen3-8b-tp4-cp4.yaml": 11,
    "plan-only-qwen3-8b-tp2-cp2-logprob.yaml": 8,
}


def plan(name: str, *arguments: str) -> dict:
    command = [sys.executable, "-m", "xcfg.cli", "plan", str(EXAMPLES / name), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_every_plan_only_example_is_counted() -> None:
    assert {path.name for path in EXAMPLES.glob("plan-only*")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_they_plan_with_these_numbers(name: str) -> None:
    document = plan(name)
    assert document["counts"] == {"planned": CASES[name], "rejected": 0}
    assert len({case["id"] for case in document["cases"]}) == CASES[name]
    assert document["cases"][0]["name"] == "baseline"


@pytest.mark.parametrize("name", CASES)
def test_their_slices_and_profiles_plan(name: str) -> None:
    for slice_name in plan_slices(name):
        assert plan(name, "--slice", slice_name)["counts"]["planned"] > 0
    profiles = [argument for number in range(6) for argument in ("--profile", f"A{number}")]
    assert all(case["rejected"] is None for case in plan(name, *profiles)["cases"])


def plan_slices(name: str) -> list[str]:
    text = (EXAMPLES / name).read_text().partition("\nslices:\n")[2]
    return [line.split(":")[0].strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", CASES)
def test_they_say_that_they_only_plan(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    assert text.startswith("# PLAN ONLY:")
    assert f"{CASES[name]} cases" in text.split("schema:")[0]
    section = REFERENCE.read_text().partition("## Plan-only examples")[2]
    row = next(line for line in section.splitlines() if f"../examples/{name}" in line)
    assert f"| {CASES[name]} |" in row
