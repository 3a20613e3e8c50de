"""The cube in the hands of others: xarray and dask as they come, and nothing but zarr and numpy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import zarr

from xcfg.cube.writer import commit


@pytest.fixture(scope="module")
def path(tmp_path_factory, build, small):
    """Case n of 2 x 3 x 2 has max_abs_dlogp n / 8; case 3 failed, the last was not run."""
    outcomes = build.all_passed(small)
    outcomes[3] = build.failed(small.cases[3])
    path = tmp_path_factory.mktemp("readers") / "cube.zarr"
    commit(path, small, outcomes[:-1], build.attributes)
    return path


def test_xarray_opens_it_without_any_option(path):
    xarray = pytest.importorskip("xarray")
    with warnings.catch_warnings(action="ignore"):  # that there is no consolidated metadata
        found = xarray.open_zarr(path)
    xarray.testing.assert_identical(found.load(), xarray.open_zarr(path, consolidated=False).load())
    assert found["status"].dims == ("rollout.dtype", "batch.size", "execution.prefix_cache")
    flags = found["status"].attrs
    meanings = dict(zip(flags["flag_values"], flags["flag_meanings"].split(), strict=True))
    assert meanings[found["status"].values[0, 1, 1]] == "scorer_error"
    assert meanings[found["status"].values[1, 2, 1]] == "not_run"


def test_dask_computes_over_labelled_chunks(path):
    xarray, dask = pytest.importorskip("xarray"), pytest.importorskip("dask.array")
    found = xarray.open_zarr(path, consolidated=False, chunks={})
    assert isinstance(found["metrics"].data, dask.Array)
    largest = found["metrics"].sel(metric="max_abs_dlogp").max(["rollout.dtype", "execution.prefix_cache"])
    # batch 1: cases 0, 1, 6, 7; batch 2: 2, 8, 9; batch 8: 4, 5, 10
    assert largest.compute().to_series().to_dict() == {1: 7 / 8, 2: 9 / 8, 8: 10 / 8}


def test_every_array_says_what_it_holds(path):
    for _, array in zarr.open_group(path, mode="r").arrays():
        assert array.attrs["description"] and len(array.metadata.dimension_names) == array.ndim


def test_zarr_and_numpy_are_enough(path, small):
    """Status, metrics, ranks and tokens of a case, found by its id."""
    cube = zarr.open_group(path, mode="r")
    case = int(np.flatnonzero(cube["case"][:] == small.cases[5].id)[0])
    cell = tuple(cube["case_cell"][case])
    labels = {name: cube[name][index] for name, index in zip(cube.attrs["layout"]["axes"], cell, strict=True)}
    assert labels == {"rollout.dtype": "float32", "batch.size": 8, "execution.prefix_cache": True}
    flags = dict(zip(cube["status"].attrs["flag_values"], cube["status"].attrs["flag_meanings"].split(), strict=True))
    assert flags[int(cube["status"][cell])] == "pass"
    metrics = dict(zip(cube["metric"][:], cube["metrics"][cell], strict=True))
    assert metrics["max_abs_dlogp"] == 5 / 8 and np.isnan(metrics["k3"])
    assert cube["rank_active_tokens"][cell].tolist() == [[3, 3]]
    start = cube["token_start"][case]
    span = slice(start, start + cube["token_count"][case])
    assert cube["token_id"][span].tolist() == [500, 501, 502, 503, 504, 505]
    np.testing.assert_array_equal(cube["token_train_logp"][span] - cube["token_rollout_logp"][span], [-0.5] * 6)
    ids = cube["sequence_id"][cube["sequence_start"][case] :][: cube["sequence_count"][case]]
    assert list(ids[cube["token_sequence"][span]]) == ["a", "a", "a", "b", "b", "b"]
