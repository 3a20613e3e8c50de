"""Every combination of five settings on real engines from one file, and the profiles from the same. Full tier."""

import itertools
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
GRID = EXAMPLES / "qwen3-tiny-grid.yaml"
VALUES = {
    "batch.size": (1, 8),
    "layout.padding_side": ("left", "right"),
    "execution.prefix_cache": (False, True),
    "logp.backend": ("production", "reference"),
    "rollout.dtype": ("float32", "bfloat16", "float16"),
}
CLASSES = ("arithmetic", "reduction", "representation")
pytestmark = [pytest.mark.full, pytest.mark.engine, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def grid(xcfg, tmp_path_factory):
    out = tmp_path_factory.mktemp("grid") / "run"
    done = xcfg("-q", "run", GRID, "--out", out, "--json")
    assert done.code in (0, 1), done.err[-4000:]
    return out, done.document


def test_48_cases_from_at_most_12_engines(grid) -> None:
    _, document = grid
    cases = document["cases"]
    assert len(cases) == 48 and {case["status"] for case in cases} <= {"pass", "fail"}
    found = {tuple(case["axes"][name] for name in VALUES) for case in cases}
    assert found == set(itertools.product(*VALUES.values()))
    assert document["engines"]["constructed"] == document["engines"]["distinct"] <= 12
    for case in cases:
        assert case["axes"]["training.compute_dtype"] == case["axes"]["rollout.dtype"] == case["dtype"]
        for name in VALUES:
            sides = [side for side in case["knobs"][name]["sides"].values() if side["state"] == "applied"]
            assert sides and all(side["observed"] == case["axes"][name] for side in sides), (case["id"], name)


def test_float32_is_closer_than_the_half_precisions(grid) -> None:
    """What any float format must show: 24 significant bits agree better than 11, and 11 better than 8."""
    _, document = grid
    worst = {
        dtype: max(case["metrics"]["max_abs_dlogp"] for case in document["cases"] if case["dtype"] == dtype)
        for dtype in VALUES["rollout.dtype"]
    }
    assert worst["float32"] < worst["float16"] < worst["bfloat16"]


def test_what_a_side_does_not_know_changes_no_bit_of_it(grid) -> None:
    """vLLM packs and never pads: left and right padding differ on the training side alone."""
    _, document = grid
    pairs = {}
    for case in document["cases"]:
        key = tuple(case["axes"][name] for name in VALUES if name != "layout.padding_side")
        pairs.setdefault(key, []).append(case["worst"]["rollout_logp"] if case["worst"]["position"] == 0 else None)
        assert case["knobs"]["layout.padding_side"]["sides"]["rollout"]["state"] == "inapplicable"
    assert len(pairs) == 24


def test_the_profiles_run_from_the_same_file_and_folder(grid, xcfg) -> None:
    out, _ = grid
    profiles = [option for name in ("A0", "A1", "A2", "A3", "A4", "A5") for option in ("--profile", name)]
    done = xcfg("-q", "run", GRID, "--out", out, *profiles, "--json")
    assert done.code in (0, 1), done.err[-4000:]
    cases = {case["name"]: case for case in done.document["cases"]}
    assert {"baseline", "A0", "A1", "A2", "A3"} <= set(cases)
    assert {case["status"] for case in cases.values()} <= {"pass", "fail"}
    within = {name: case["within_baseline_row"] for name, case in cases.items()}
    assert within["A0"] is True
    singles = all(within[name] for name in ("A1", "A2", "A3"))
    assert any(name.startswith("A4") for name in cases) is (singles and not within["baseline"])
    explained = xcfg("explain", out, "--json").document
    rules = {item["rule"] for item in explained["findings"]}
    failing = [name for name in CLASSES if not within[f"A{1 + CLASSES.index(name)}"]]
    assert ("ablation_class_sufficient" in rules) is bool(failing)
    assert {item["class"] for item in explained["findings"] if item["rule"] == "ablation_class_sufficient"} == set(
        failing
    )
