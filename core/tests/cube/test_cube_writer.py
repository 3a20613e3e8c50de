from __future__ import annotations

import random

import numpy as np
import pytest
import zarr

from xcfg.cube.reader import open_cube
from xcfg.cube.schema import FLAT_CHUNK, STATUS_CODES
from xcfg.cube.writer import commit, rebuild
from xcfg.model.json import thaw
from xcfg.model.result import METRIC_NAMES
from xcfg.model.status import Status


def test_xarray_shows_one_named_dimension_an_axis(tmp_path, build, small):
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "cube.zarr"
    commit(path, small, build.all_passed(small), build.attributes)

    found = xarray.open_zarr(path, consolidated=False).load()

    sizes = {"rollout.dtype": 2, "batch.size": 3, "execution.prefix_cache": 2, "metric": len(METRIC_NAMES), "side": 2}
    assert {name: found.sizes[name] for name in sizes} == sizes
    assert found["status"].dims == ("rollout.dtype", "batch.size", "execution.prefix_cache")
    assert found["metrics"].dims == (*found["status"].dims, "metric")
    assert found["observed"].dims == (*found["status"].dims, "side", "axis")
    assert found["rank_metrics"].dims == (*found["status"].dims, "rollout_rank", "train_rank", "metric")
    assert list(found["rollout.dtype"].values) == ["float32", "bfloat16"]
    assert found["batch.size"].dtype == np.int64
    assert found["execution.prefix_cache"].dtype == np.bool_
    # case 7 of the product: bfloat16, batch 1, prefix cache on
    cell = {"rollout.dtype": "bfloat16", "batch.size": 1, "execution.prefix_cache": True}
    assert found["metrics"].sel({**cell, "metric": "max_abs_dlogp"}).item() == 7 / 8
    assert found["status"].sel(cell).item() == STATUS_CODES[Status.PASS]
    assert found["active_tokens"].dtype == np.int64
    assert found.attrs["contract"]["id"] == "ws1"
    assert "measured" not in found.attrs


def test_every_value_comes_back(tmp_path, build, small):
    path = tmp_path / "cube.zarr"
    outcomes = build.all_passed(small)
    outcomes[3] = build.failed(small.cases[3])
    commit(path, small, outcomes[:-1], build.attributes)

    cube = open_cube(path)

    assert cube.axes == {
        "rollout.dtype": ("float32", "bfloat16"),
        "batch.size": (1, 2, 8),
        "execution.prefix_cache": (False, True),
    }
    assert cube.cases == tuple(case.id for case in small.cases)
    expected = ["pass", "pass", "pass", "scorer_error", "pass", "pass", "pass", "pass", "pass", "fail", "fail"]
    assert list(cube.statuses().values()) == [*expected, "not_run"]
    assert cube.values(small.cases[5].id) == {"max_abs_dlogp": 5 / 8, "mean_abs_dlogp": 5 / 16}
    assert cube.values(small.cases[3].id) == {}
    assert cube.coordinates(small.cases[5].id) == thaw(small.cases[5].axes)
    assert cube.ranks(small.cases[5].id) == {
        (0, 0): (3, {"max_abs_dlogp": 5 / 8}),
        (0, 1): (3, {"max_abs_dlogp": 5 / 8 - 1}),
    }
    tokens = cube.tokens(small.cases[5].id)
    assert tokens is not None
    assert tokens.sequence_ids == ("a", "b")
    assert list(tokens.token) == [500, 501, 502, 503, 504, 505]
    assert list(tokens.sequence) == [0, 0, 0, 1, 1, 1]
    assert list(tokens.position) == [0, 1, 2, 0, 1, 2]
    assert list(tokens.rollout_logp) == [-6.0] * 6
    assert list(tokens.train_logp) == [-6.5] * 6
    assert list(tokens.train_rank) == [0, 1, 0, 1, 0, 1]
    assert cube.tokens(small.cases[3].id) is None
    record = cube.record(small.cases[3].id)
    assert record["reason"] == "worker died"
    assert record["sides"]["rollout"]["failure"] == {"status": "scorer_error", "reason": "worker died"}
    assert record["sides"]["rollout"]["knobs"]["batch.size"] == {"requested": 2}
    assert cube.record(small.cases[11].id) == {}
    assert cube.attributes["plugins"] == {"xcfg": "0.1.0"}


def test_absence_is_told_from_nan(tmp_path, build, small):
    path = tmp_path / "cube.zarr"
    commit(path, small, [build.failed(small.cases[0], Status.NON_FINITE)], build.attributes)
    root = zarr.open_group(path, mode="r")
    assert root["status"][0, 0, 0] == STATUS_CODES[Status.NON_FINITE]
    assert root["status"][0, 0, 1] == 0
    assert np.isnan(root["metrics"][0, 0, :2]).all()
    assert root["within_baseline_row"][0, 0, 0] == -1


@pytest.mark.parametrize("seed", range(2))
def test_bytes_do_not_depend_on_order_or_number_of_commits(tmp_path, build, small, seed):
    outcomes = build.all_passed(small)
    outcomes[3] = build.failed(small.cases[3])
    rebuild(tmp_path / "rebuilt.zarr", small, outcomes, build.attributes)

    shuffled = random.Random(seed)
    order = outcomes[:]
    shuffled.shuffle(order)
    cut = shuffled.randrange(1, len(order))
    path = tmp_path / "cube.zarr"
    # a first verdict that a later attempt replaces leaves no trace either
    commit(path, small, [build.failed(order[0].case), build.passed(small.cases[3], 3, count=50)], build.attributes)
    commit(path, small, order[:cut], build.attributes)
    commit(path, small, order[cut:-1], build.attributes)
    commit(path, small, order[-1:], build.attributes)
    # the first outcomes again, now that the others are there
    commit(path, small, [*order[:1], outcomes[3]] if order[0] is not outcomes[3] else order[:1], build.attributes)

    assert build.hashes(path) == build.hashes(tmp_path / "rebuilt.zarr")
    before = {file: file.stat().st_mtime_ns for file in path.rglob("c*") if file.is_file()}
    commit(path, small, order, build.attributes)
    assert {file: file.stat().st_mtime_ns for file in path.rglob("c*") if file.is_file()} == before
    rebuild(path, small, order, build.attributes)
    assert build.hashes(path) == build.hashes(tmp_path / "rebuilt.zarr")


def test_measured_facts_stay_outside_the_claim(tmp_path, build, small):
    first, second = tmp_path / "first.zarr", tmp_path / "second.zarr"
    commit(first, small, build.all_passed(small), build.attributes)
    other = {**build.attributes, "measured": {"host": "elsewhere"}}
    commit(second, small, build.all_passed(small, attempt=7), other)

    assert build.hashes(first) == build.hashes(second)
    assert build.hashes(first, measured=True) != build.hashes(second, measured=True)
    measured = zarr.open_group(second, mode="r")["measured"]
    assert measured.attrs["host"] == "elsewhere"
    assert measured["attempt"][4].tolist() == [7, 7]


def test_an_added_value_appends_and_rewrites_nothing(tmp_path, build, small):
    path = tmp_path / "cube.zarr"
    commit(path, small, build.all_passed(small), build.attributes)
    stored = {file.relative_to(path): file for file in path.rglob("c*") if file.is_file()}
    before = {name: (file.stat().st_mtime_ns, file.stat().st_ino) for name, file in stored.items()}
    bytes_before = build.hashes(path)

    # the new value stands between the old ones in the new plan: the cube still puts it behind them
    wider = build.product(
        {"rollout.dtype": ["float32", "bfloat16"], "batch.size": [1, 4, 2, 8], "execution.prefix_cache": [False, True]}
    )
    number = {case.id: index for index, case in enumerate(small.cases)}
    added = [build.passed(case, 20 + index) for index, case in enumerate(wider.cases) if case.id not in number]
    assert len(added) == 4
    commit(path, wider, added, build.attributes)

    result = [name for name in stored if name.parts[0] != "measured"]
    after = {name: ((path / name).stat().st_mtime_ns, (path / name).stat().st_ino) for name in result}
    assert after == {name: before[name] for name in result}
    assert all(build.hashes(path)[name.as_posix()] == bytes_before[name.as_posix()] for name in result)
    cube = open_cube(path)
    assert cube.axes["batch.size"] == (1, 2, 8, 4)
    assert cube.values(small.cases[5].id)["max_abs_dlogp"] == 5 / 8
    assert cube.values(added[0].case.id)["max_abs_dlogp"] == 22 / 8
    tokens = cube.tokens(added[0].case.id)
    assert tokens is not None and tokens.token[0] == 2200
    assert zarr.open_group(path, mode="r")["token_start"][len(small.cases)] == FLAT_CHUNK

    xarray = pytest.importorskip("xarray")
    assert xarray.open_zarr(path, consolidated=False).sizes["batch.size"] == 4
    appended = build.hashes(path)
    everything = [*build.all_passed(small), *added]
    rebuild(path, wider, everything[::-1], build.attributes)
    assert build.hashes(path) == appended


def test_outcomes_must_be_of_the_plan_and_once(tmp_path, build, small):
    stranger = build.case({"batch.size": 99})
    with pytest.raises(ValueError, match="not in the plan"):
        commit(tmp_path / "cube.zarr", small, [build.passed(stranger, 0)], build.attributes)
    twice = build.passed(small.cases[0], 0)
    with pytest.raises(ValueError, match="two outcomes of one case"):
        commit(tmp_path / "cube.zarr", small, [twice, twice], build.attributes)
    assert list(tmp_path.iterdir()) == []


def test_longer_tokens_than_a_chunk_move_when_an_earlier_case_arrives(tmp_path, build):
    plan = build.product({"batch.size": [1, 2, 3]})
    big = [build.passed(case, number, count=50_000 + number) for number, case in enumerate(plan.cases)]
    path = tmp_path / "cube.zarr"
    for number in (2, 0, 1):
        commit(path, plan, [big[number]], build.attributes)
    tokens = open_cube(path).tokens(plan.cases[2].id)
    assert tokens is not None
    assert np.array_equal(tokens.token, np.arange(50_002) + 200)
    rebuild(tmp_path / "other.zarr", plan, big, build.attributes)
    assert build.hashes(path) == build.hashes(tmp_path / "other.zarr")
