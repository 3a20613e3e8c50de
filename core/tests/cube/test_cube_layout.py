from __future__ import annotations

import numpy as np
import pytest
import zarr
from attrs import evolve

from xcfg.cube.layout import LayoutChanged, cell_chunk
from xcfg.cube.query import query
from xcfg.cube.reader import open_cube
from xcfg.cube.schema import STATUS_CODES
from xcfg.cube.writer import commit, rebuild
from xcfg.errors import InvalidInput
from xcfg.model.result import METRIC_NAMES
from xcfg.model.status import Status


def test_status_codes_cover_every_status_and_never_zero():
    assert set(STATUS_CODES) == set(Status)
    assert sorted(STATUS_CODES.values()) == list(range(1, len(Status) + 1))


def test_an_added_axis_is_refused_until_rebuilt(tmp_path, build, small):
    path = tmp_path / "cube.zarr"
    commit(path, small, build.all_passed(small), build.attributes)
    before = build.hashes(path)
    other = build.product({"rollout.dtype": ["float32"], "batch.size": [1], "logp.backend": ["production"]})

    with pytest.raises(LayoutChanged, match=r"axes rollout\.dtype, batch\.size, execution\.prefix_cache .* logp"):
        commit(path, other, [], build.attributes)
    assert build.hashes(path) == before

    rebuild(path, other, build.all_passed(other), build.attributes)
    assert list(open_cube(path).axes) == ["rollout.dtype", "batch.size", "logp.backend"]


def test_a_value_of_another_type_needs_a_rebuild(tmp_path, build):
    path = tmp_path / "cube.zarr"
    commit(path, build.product({"batch.size": [1, 2]}), [], build.attributes)
    mixed = build.product({"batch.size": [1, 2, None]})
    with pytest.raises(LayoutChanged, match="int64 coordinates and cannot take null"):
        commit(path, mixed, [], build.attributes)
    rebuild(path, mixed, [], build.attributes)
    assert open_cube(path).axes == {"batch.size": (1, 2, None)}
    root = zarr.open_group(path, mode="r")
    assert list(root["batch.size"][:]) == ["1", "2", "null"]
    assert root["batch.size"].attrs["values"] == [1, 2, None]


def test_mixed_values_stay_apart(tmp_path, build):
    path = tmp_path / "cube.zarr"
    values = [None, "null", True, "true", 1, 0.5, "text", "é"]
    plan = build.product({"vllm.odd": values})
    commit(path, plan, build.all_passed(plan), build.attributes)
    cube = open_cube(path)
    assert [type(value) for value in cube.axes["vllm.odd"]] == [type(value) for value in values]
    assert cube.axes["vllm.odd"] == tuple(values)
    labels = list(zarr.open_group(path, mode="r")["vllm.odd"][:])
    assert labels == ["null", '"null"', "true", '"true"', "1", "0.5", "text", "é"]


def test_two_cases_in_one_cell_are_refused(tmp_path, build):
    first = build.case({"batch.size": 1, "hidden": 1})
    second = build.case({"batch.size": 1, "hidden": 2})
    with pytest.raises(InvalidInput, match="would share one cell"):
        commit(tmp_path / "cube.zarr", build.plan(["batch.size"], [first, second]), [], build.attributes)
    assert not (tmp_path / "cube.zarr").exists()


def test_a_reserved_axis_name_is_refused(tmp_path, build):
    with pytest.raises(InvalidInput, match="axis named metric"):
        commit(tmp_path / "cube.zarr", build.product({"metric": [1]}), [], build.attributes)


def test_a_plan_without_axes(tmp_path, build):
    path = tmp_path / "cube.zarr"
    plan = build.plan([], [build.case({})])
    commit(path, plan, build.all_passed(plan), build.attributes)
    assert list(open_cube(path).statuses().values()) == ["pass"]
    assert zarr.open_group(path, mode="r")["metrics"].shape == (len(METRIC_NAMES),)


def test_chunk_rule():
    assert cell_chunk((10, 10, 10, 10, 10)) == (1, 1, 10, 10, 10)
    assert cell_chunk((2, 3, 2)) == (2, 3, 2)
    assert cell_chunk((7, 300)) == (1, 300)
    assert cell_chunk((3, 5000)) == (1, 1000)
    assert cell_chunk((1001, 1)) == (1000, 1)
    assert cell_chunk(()) == ()


def test_chunks_of_cells_never_run_are_not_stored(tmp_path, build):
    """A 10 x 10 x 10 x 3 cube in blocks of 1 x 10 x 10 x 3 cells with three cells run, two of them in one block."""
    path = tmp_path / "cube.zarr"
    axes = {"a.x": list(range(10)), "a.y": list(range(10)), "a.z": list(range(10)), "a.w": ["p", "q", "r"]}
    corners = [(0, 0, 0, "p"), (9, 9, 9, "r"), (4, 5, 6, "q"), (4, 0, 0, "p")]
    cases = [build.case(dict(zip(axes, point, strict=True))) for point in corners]
    lines = [
        build.case({**dict(zip(axes, corners[0], strict=True)), name: value})
        for name, values in axes.items()
        for value in values[1:]
    ]
    plan = build.plan(list(axes), [*cases, *lines])
    commit(path, plan, [build.passed(case, number) for number, case in enumerate(cases[1:], 1)], build.attributes)
    root = zarr.open_group(path, mode="r")
    assert root["status"].shape == (10, 10, 10, 3)
    assert root["status"].chunks == (1, 10, 10, 3)
    for name, each in (("status", 1), ("metrics", 1), ("requested", len(axes)), ("rank_metrics", 2)):
        assert len(list((path / name).glob("c.*"))) == 2 * each
    # so few of the cells are cases that they are read chunk by chunk: every value is still that of its case
    select = ["case_id", "max_abs_dlogp", "observed.training.a.z", "a.w"]
    assert query(path, "status != not_run and observed.a.x >= 4", select) == [
        {"case_id": cases[number].id, "max_abs_dlogp": number / 8, "observed.training.a.z": z, "a.w": w}
        for number, z, w in ((1, 9, "r"), (2, 6, "q"), (3, 0, "p"))
    ]
    assert list(open_cube(path).statuses().values()).count("not_run") == len({case.id for case in plan.cases}) - 3


def test_ten_by_ten_by_ten(tmp_path, build):
    path = tmp_path / "cube.zarr"
    plan = build.product({"a.x": list(range(10)), "a.y": list(range(10)), "a.z": [value / 4 for value in range(10)]})
    commit(path, plan, build.all_passed(plan), build.attributes)
    root = zarr.open_group(path, mode="r")
    assert root["status"].chunks == (10, 10, 10)
    # case number = 100 x + 10 y + z, so the metric is linear in the indices
    x, y, z = np.meshgrid(*[np.arange(10)] * 3, indexing="ij")
    assert np.array_equal(root["metrics"][..., 0], (100 * x + 10 * y + z) / 8)
    assert root["a.z"].dtype == np.float64


def test_a_scorer_axis_is_requested_on_its_own_side(tmp_path, build):
    path = tmp_path / "cube.zarr"
    first, second = (build.case({"rollout.scorer": name}) for name in ("vllm", "torch"))
    cases = [evolve(case, rollout=evolve(case.rollout, scorer=case.axes["rollout.scorer"])) for case in (first, second)]
    plan = build.plan(["rollout.scorer"], cases)
    commit(path, plan, [build.passed(cases[0], 0), build.failed(cases[1])], build.attributes)
    select = ["requested.rollout.scorer", "observed.rollout.scorer", "requested.training.rollout.scorer"]
    assert [list(row.values()) for row in query(path, "", select)] == [["vllm", "vllm", None], ["torch", None, None]]


def test_names_follow_the_plan(tmp_path, build, small):
    """A case keeps its id when the experiment calls it otherwise."""
    path = tmp_path / "cube.zarr"
    commit(path, small, build.all_passed(small), build.attributes)
    renamed = evolve(small.cases[0], name="baseline", changed=("batch.size",))
    commit(path, evolve(small, cases=(renamed, *small.cases[1:])), [], build.attributes)
    assert query(path, "name == baseline", ["case_id", "max_abs_dlogp"]) == [
        {"case_id": small.cases[0].id, "max_abs_dlogp": 0.0}
    ]
