"""netCDF export, read back by xarray: every value is where the plan puts it."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from xcfg.cube import netcdf
from xcfg.cube.export import case_table, token_table
from xcfg.cube.netcdf import write_netcdf
from xcfg.cube.reader import open_cube
from xcfg.cube.writer import commit
from xcfg.errors import InvalidInput

xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")


@pytest.fixture(scope="module")
def cube(tmp_path_factory, build):
    """A text, a mixed and a bool axis; case n has max_abs_dlogp n / 8, case 3 failed, the last was not run."""
    plan = build.product(
        {"rollout.dtype": ["float32", "bfloat16"], "batch.size": [1, 2, None], "execution.prefix_cache": [False, True]}
    )
    outcomes = build.all_passed(plan)
    outcomes[3] = build.failed(plan.cases[3])
    path = tmp_path_factory.mktemp("netcdf") / "cube.zarr"
    commit(path, plan, outcomes[:-1], build.attributes)
    return open_cube(path)


def opened(table):
    stream = io.BytesIO()
    count = write_netcdf(table, stream)
    return count, xarray.open_dataset(io.BytesIO(stream.getvalue()), engine="h5netcdf").load()


def test_fields_lie_over_the_axes(cube):
    count, found = opened(case_table(cube))
    assert count == 12
    assert found.sizes == {"rollout.dtype": 2, "batch.size": 3, "execution.prefix_cache": 2}
    assert list(found["batch.size"].values) == ["1", "2", "null"]
    assert found["execution.prefix_cache"].dtype == np.bool_
    wanted = np.arange(12.0).reshape(2, 3, 2) / 8
    wanted[0, 1, 1] = wanted[1, 2, 1] = np.nan
    np.testing.assert_array_equal(found["max_abs_dlogp"].values, wanted)
    cell = {"rollout.dtype": "bfloat16", "batch.size": "1", "execution.prefix_cache": True}
    assert found["max_abs_dlogp"].sel(cell).item() == 7 / 8
    assert found["status"].values.ravel().tolist() == [
        *("pass", "pass", "pass", "scorer_error", "pass", "pass"),
        *("pass", "pass", "pass", "fail", "fail", "not_run"),
    ]
    assert found["within_baseline_row"].values.ravel().tolist() == [1, 1, 1, -1, 1, 0, 0, 0, 0, 0, 0, -1]
    assert found["within_baseline_row"].attrs["flag_meanings"] == "unknown no yes"
    assert found["active_tokens"].values.ravel().tolist() == [6, 6, 6, 0, 6, 6, 6, 6, 6, 6, 6, 0]
    assert found["active_tokens"].dtype == np.int64
    # no case has this metric: still numbers, none of them defined
    assert found["k3"].dtype == np.float64 and np.isnan(found["k3"].values).all()
    assert found.attrs["schema"] == "xcfg.cube.netcdf/1"
    assert json.loads(found.attrs["contract"])["id"] == "ws1"


def test_only_the_values_of_the_cases_that_meet_the_condition(cube):
    select = ["active_tokens", "observed.batch.size", "name"]
    count, found = opened(case_table(cube, "max_abs_dlogp in [0, 0.625]", select))
    assert count == 2
    # cases 0 and 5: float32, batch 1 and null, prefix cache off and on
    assert found.sizes == {"rollout.dtype": 1, "batch.size": 2, "execution.prefix_cache": 2}
    assert list(found.data_vars) == select
    np.testing.assert_array_equal(found["active_tokens"].values, [[[6, np.nan], [np.nan, 6]]])
    assert found["name"].values.tolist() == [[["float32-1-false", ""], ["", "float32-none-true"]]]
    np.testing.assert_array_equal(found["observed.batch.size"].values, [[[1, np.nan], [np.nan, np.nan]]])


def test_tokens_one_after_the_other(cube):
    select = ["case_id", "batch.size", "token_id", "rollout_logp"]
    count, found = opened(token_table(cube, "rollout.dtype == bfloat16 and not execution.prefix_cache", select))
    assert count == found.sizes["row"] == 18
    # case n has the ids 100 n + (0..5) and the logprob -1 - n
    assert found["token_id"].values.tolist() == [100 * case + at for case in (6, 8, 10) for at in range(6)]
    assert found["token_id"].dtype == np.int64
    assert found["rollout_logp"].values.tolist() == [-1.0 - case for case in (6, 8, 10) for _ in range(6)]
    np.testing.assert_array_equal(found["batch.size"].values, np.repeat([1, 2, np.nan], 6))


def test_a_grid_too_large_for_a_dense_file_is_refused(cube, monkeypatch):
    monkeypatch.setattr(netcdf, "MOST_CELLS", 11)
    with pytest.raises(InvalidInput, match=r"12 cases span 12 cells \(2 x 3 x 2\)"):
        write_netcdf(case_table(cube), io.BytesIO())


def test_a_cube_without_axes(tmp_path, build):
    plan = build.plan([], [build.case({})])
    commit(tmp_path / "cube.zarr", plan, build.all_passed(plan), build.attributes)
    count, found = opened(case_table(open_cube(tmp_path / "cube.zarr"), "", ["status", "max_abs_dlogp"]))
    assert count == 1 and found["status"].item() == "pass" and found["max_abs_dlogp"].item() == 0.0
