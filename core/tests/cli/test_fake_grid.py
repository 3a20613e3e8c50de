"""``docs/examples/fake-grid-256.yaml``: what it promises, and one run of its grid of engines."""

import json
from pathlib import Path

import pytest
import zarr

from xcfg.cli.experiment import Selection, planned
from xcfg.plugin.registry import load_registry
from xcfg.runner.schedule import group, side_configs

from .searched import command

GRID = Path(__file__).parents[3] / "docs/examples/fake-grid-256.yaml"
ENGINES_ONLY = (
    "axes={rollout.dtype: [bfloat16, float32], rollout.tensor_parallel_size: [1, 2], "
    "rollout.enforce_eager: [true, false], execution.prefix_cache: [false, true], "
    "training.compute_dtype: [bfloat16, float32], training.output_dtype: [null, float32], "
    "training.reduce_dtype: [null, float32], training.attention_backend: [sdpa, eager]}"
)


def planned_grid(*overrides, **selected):
    registry = load_registry(allow_fake=True)
    plan = planned(Selection(experiment=GRID, overrides=overrides, **selected), registry)
    sides = side_configs(plan)
    by_role = [len([side for side in sides if side.role == role]) for role in ("rollout", "training")]
    return len(plan.runnable), by_role, len(group(sides, registry))


def test_256_cases_are_16_by_16_configurations_from_8_engines():
    assert planned_grid() == (256, [16, 16], 8)


def test_the_grid_of_engines_is_4_by_4_configurations_from_8_engines():
    assert planned_grid(slice_name="engines") == (16, [4, 4], 8)


def test_nothing_is_shared_where_every_setting_is_one_of_engine_construction():
    assert planned_grid(ENGINES_ONLY, "slices={}") == (256, [16, 16], 32)


def test_the_file_says_how_to_ask_for_that():
    said = " ".join(line.lstrip("# ") for line in GRID.read_text().splitlines())
    assert ENGINES_ONLY in said


def test_without_permission_it_is_refused(xcfg, tmp_path):
    done = xcfg("run", GRID, "--out", tmp_path / "out")
    assert done.code == 2 and "--allow-fake" in done.err
    assert not (tmp_path / "out").exists()


RUN = ("run", GRID, "--allow-fake", "--slice", "engines", "--jobs", "1", "--out")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Folder and document of one run of the 16 cases."""
    out = tmp_path_factory.mktemp("grid") / "out"
    return out, command(*RUN, out)


@pytest.fixture(scope="module")
def out(first):
    return first[0]


def files(out):
    kept = ("plan.json", "checkpoints.json", "cases/*/comparison.json", "sides/*/*/*")
    found = [path for pattern in kept for path in out.glob(pattern)]
    return {path.relative_to(out).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def test_16_cases_take_8_constructions_and_a_second_run_none(xcfg, first):
    out, document = first
    assert document["engines"] == {"distinct": 8, "constructed": 8, "reused_from_disk": 0}
    assert document["counts"] == {"pass": 16} and document["fake"] is True
    before = files(out)
    assert len([name for name in before if name.endswith("comparison.json")]) == 16
    again = xcfg(*RUN, out, "--json").document
    assert again["engines"] == {"distinct": 8, "constructed": 0, "reused_from_disk": 8}
    assert again["cases"] == document["cases"]
    assert files(out) == before, "what a second run finds as it should be is not written again"


def test_every_output_says_that_it_is_fake(xcfg, out):
    case = json.loads((out / "plan.json").read_text())["baseline"]
    for shown in (("report", out), ("show", out, case), ("explain", out)):
        assert "fake scorers" in xcfg(*shown).out, shown
        assert xcfg(*shown, "--json").document["fake"] is True, shown
    assert json.loads((out / "cases" / case / "comparison.json").read_text())["fake"] is True
    assert zarr.open_group(out / "cube.zarr", mode="r").attrs["fake"] is True


def test_a_comparison_that_was_changed_by_hand_is_made_again_from_the_tensors(xcfg, out):
    path = next(iter(sorted((out / "cases").glob("*/comparison.json"))))
    made = path.read_bytes()
    path.write_bytes(made.replace(b'"status": "pass"', b'"status": "drift"', 1))
    xcfg(*RUN, out, "--json")
    assert path.read_bytes() == made
