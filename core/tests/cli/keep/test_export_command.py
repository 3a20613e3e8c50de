"""``xcfg cube export``: a file that is whole or not there."""

from __future__ import annotations

import csv
import json
import os
import sys

import pytest

from xcfg.cli.keep import export as export_module


def test_the_rows_of_a_query_in_a_file(finished, xcfg, tmp_path):
    out = finished / "dtype"
    done = xcfg("cube", "export", out, tmp_path / "a.json", "--select", "case_id,rollout.dtype,max_abs_dlogp", "--json")
    assert (done.code, done.document["rows"], done.document["format"]) == (0, 2, "json")
    rows = xcfg("cube", "query", out, "--select", "case_id,rollout.dtype,max_abs_dlogp", "--json").document["rows"]
    assert json.loads((tmp_path / "a.json").read_text())["rows"] == rows
    xcfg("cube", "export", out, tmp_path / "b", "--format", "csv", "--where", "rollout.dtype == float32")
    with (tmp_path / "b").open() as stream:
        assert [row["rollout.dtype"] for row in csv.DictReader(stream)] == ["float32"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b"]


def test_the_tokens_are_those_of_the_attempts(finished, xcfg, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    from safetensors.numpy import load_file

    out = finished / "dtype"
    assert xcfg("cube", "export", out, tmp_path / "t.parquet", "--tokens", "--where", "name == baseline").code == 0
    found = parquet.read_table(tmp_path / "t.parquet").to_pydict()
    assert len(found["token_id"]) == 24  # four prompts of six sampled tokens
    logprobs = set()
    for path in out.glob("sides/*/*/samples.safetensors"):
        for values in load_file(path).values():
            if values.dtype.kind == "f":
                logprobs |= set(values.reshape(-1).tolist())
    assert set(found["rollout_logp"]) | set(found["train_logp"]) <= logprobs


def test_an_existing_file_stays_unless_forced(finished, xcfg, tmp_path):
    target = tmp_path / "a.csv"
    target.write_text("mine")
    assert xcfg("cube", "export", finished / "dtype", target).code == 2
    assert target.read_text() == "mine"
    assert xcfg("cube", "export", finished / "dtype", target, "--force").code == 0
    assert target.read_text().startswith("case_id,")


def test_a_file_that_appears_meanwhile_stays(finished, xcfg, tmp_path, monkeypatch):
    target = tmp_path / "a.csv"
    monkeypatch.setattr(export_module.os, "fsync", lambda _handle: target.write_text("mine"))
    assert xcfg("cube", "export", finished / "dtype", target).code == 2
    assert target.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_nothing_is_left_where_writing_fails(finished, xcfg, tmp_path, monkeypatch):
    def full(_handle):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(export_module.os, "fsync", full)
    done = xcfg("cube", "export", finished / "dtype", tmp_path / "a.csv")
    assert done.code == 7 and "no space" in done.err
    assert not list(tmp_path.iterdir())


def test_no_row_writes_no_file(finished, xcfg, tmp_path):
    assert xcfg("cube", "export", finished / "dtype", tmp_path / "a.csv", "--where", "max_abs_dlogp > 1000").code == 5
    assert not list(tmp_path.iterdir())


def test_netcdf_by_its_suffix(finished, xcfg, tmp_path):
    pytest.importorskip("h5netcdf")
    xarray = pytest.importorskip("xarray")
    out, target = finished / "dtype", tmp_path / "a.nc"
    done = xcfg("cube", "export", out, target, "--select", "max_abs_dlogp,status", "--json")
    assert (done.code, done.document["rows"], done.document["format"]) == (0, 2, "netcdf")
    rows = xcfg("cube", "query", out, "--select", "rollout.dtype,max_abs_dlogp", "--json").document["rows"]
    with xarray.open_dataset(target, engine="h5netcdf") as found:
        values = found["max_abs_dlogp"].to_series().to_dict()
    assert values == {row["rollout.dtype"]: row["max_abs_dlogp"] for row in rows}
    assert xcfg("cube", "export", out, tmp_path / "b", "--format", "netcdf", "--tokens").code == 0
    with xarray.open_dataset(tmp_path / "b", engine="h5netcdf") as found:
        assert found.sizes["row"] == 48  # two cases of four prompts of six sampled tokens


def test_netcdf_without_its_package_names_the_line_to_install(finished, xcfg, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5netcdf", None)
    done = xcfg("cube", "export", finished / "dtype", tmp_path / "a.nc", "--json")
    assert done.code == 7
    assert done.document["errors"][0]["hint"] == 'python -m pip install "xcfg[netcdf]"'
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a", "a.xlsx", "none/a.csv", "."])
def test_a_target_that_cannot_be(finished, xcfg, tmp_path, name):
    assert xcfg("cube", "export", finished / "dtype", tmp_path / name).code == 2


def test_parquet_without_pyarrow_names_the_line_to_install(finished, xcfg, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = xcfg("cube", "export", finished / "dtype", tmp_path / "a.parquet", "--json")
    assert done.code == 7
    assert done.document["errors"][0]["hint"] == 'python -m pip install "xcfg[parquet]"'
    assert not list(tmp_path.iterdir())
