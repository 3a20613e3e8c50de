"""A cube as the first version of the schema wrote it, put together by hand with zarr alone, still reads and grows."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zarr

from xcfg.cube.query import query
from xcfg.cube.reader import open_cube
from xcfg.cube.writer import commit, rebuild
from xcfg.errors import ArtifactError
from xcfg.model.result import METRIC_NAMES

AXES = ["rollout.dtype", "batch.size"]
CASES = ["c0", "c1", "c2"]
"""Cells (0, 0), (0, 1) and (1, 0) of 2 x 2; the first two were run, with two tokens each."""
TEXT = "str"


def nan(*shape):
    return np.full(shape, np.nan)


def cells(first, second, fill, dtype):
    return np.array([[first, second], [fill, fill]], dtype=dtype)


def provenance(unit):
    """JSON texts of the two cells that were run, both sides alike."""
    found = np.full((2, 2, 2, 2), "", dtype=object)
    for column, size in enumerate((1, 2)):
        found[0, column, :] = ['"float32"', str(size * unit)]
    return found


def arrays():
    """Name: (dimensions, chunk, dtype, fill value, values)."""
    grid, metric = AXES, len(METRIC_NAMES)
    pairs = [*grid, "rollout_rank", "train_rank"]
    metrics, ranks = nan(2, 2, metric), nan(2, 2, 1, 1, metric)
    metrics[0, 0, 0], metrics[0, 1, 0] = 0.25, 3.0
    ranks[0, 0, 0, 0, 0], ranks[0, 1, 0, 0, 0] = 0.25, 3.0
    record = json.dumps({"reason": "over the limit", "per_rank": [{"rollout_rank": 0, "train_rank": 0}]})
    found = {
        "rollout.dtype": (["rollout.dtype"], [2], TEXT, "", ["float32", "bfloat16"]),
        "batch.size": (["batch.size"], [2], "int64", 0, [1, 2]),
        "metric": (["metric"], [metric], TEXT, "", list(METRIC_NAMES)),
        "side": (["side"], [2], TEXT, "", ["rollout", "training"]),
        "axis": (["axis"], [2], TEXT, "", AXES),
        "status": (grid, [2, 2], "uint8", 0, cells(1, 2, 0, "uint8")),
        "metrics": ([*grid, "metric"], [2, 2, metric], "float64", np.nan, metrics),
        "active_tokens": (grid, [2, 2], "int64", 0, cells(2, 2, 0, "int64")),
        "threshold": (grid, [2, 2], "float64", np.nan, cells(1.0, 1.0, np.nan, "float64")),
        "within_baseline_row": (grid, [2, 2], "int8", -1, cells(1, 0, -1, "int8")),
        "case_id": (grid, [2, 2], TEXT, "", cells("c0", "c1", "", object)),
        "dtype": (grid, [2, 2], TEXT, "", cells("float32", "float32", "", object)),
        "requested": ([*grid, "side", "axis"], [2, 2, 2, 2], TEXT, "", provenance(1)),
        "materialized": ([*grid, "side", "axis"], [2, 2, 2, 2], TEXT, "", provenance(1)),
        "observed": ([*grid, "side", "axis"], [2, 2, 2, 2], TEXT, "", provenance(10)),
        "rank_metrics": ([*pairs, "metric"], [2, 2, 1, 1, metric], "float64", np.nan, ranks),
        "rank_active_tokens": (pairs, [2, 2, 1, 1], "int64", 0, cells(2, 2, 0, "int64")[..., None, None]),
        "case_cell": (["case", "axis"], [3, 2], "int64", -1, [[0, 0], [0, 1], [1, 0]]),
        "side_id": (["case", "side"], [3, 2], TEXT, "", [["r0", "t0"], ["r1", "t1"], ["", ""]]),
    }  # fmt: skip
    table = {
        "case": (TEXT, "", CASES),
        "case_name": (TEXT, "", ["baseline", "", ""]),
        "case_changed": (TEXT, "", ["[]", '["batch.size"]', '["rollout.dtype"]']),
        "token_start": ("int64", 0, [0, 2, 0]),
        "token_count": ("int64", 0, [2, 2, 0]),
        "sequence_start": ("int64", 0, [0, 0, 0]),
        "sequence_count": ("int64", 0, [1, 1, 0]),
        "rollout_ranks": ("int64", 0, [1, 1, 0]),
        "train_ranks": ("int64", 0, [1, 1, 0]),
        "record": (TEXT, "", [record, record, ""]),
    }
    tokens = {
        "token_rollout_logp": ("float32", np.nan, [-1, -2, -3, -4]),
        "token_train_logp": ("float32", np.nan, [-1.25, -2, -6, -4]),
        "token_id": ("int64", -1, [10, 11, 12, 13]),
        "token_position": ("int64", -1, [0, 1, 0, 1]),
        "token_sequence": ("int64", -1, [0, 0, 0, 0]),
        "token_rollout_rank": ("int64", -1, [0, 0, 0, 0]),
        "token_train_rank": ("int64", -1, [0, 0, 0, 0]),
    }
    found |= {name: (["case"], [3], dtype, fill, values) for name, (dtype, fill, values) in table.items()}
    found |= {name: (["token"], [65_536], dtype, fill, values) for name, (dtype, fill, values) in tokens.items()}
    return {**found, "sequence_id": (["sequence"], [65_536], TEXT, "", ["prompt"])}


def written(path, schema="xcfg.cube/1"):
    layout = {
        "axes": AXES,
        "coordinates": {"rollout.dtype": "str", "batch.size": "int64"},
        "chunk": [2, 2],
        "case_chunk": 3,
        "metric_chunk": len(METRIC_NAMES),
        "extensions": [],
    }
    attributes = {"contract": {"id": "ws1"}, "schema": schema, "layout": layout}
    root = zarr.create_group(path, zarr_format=3, attributes=attributes)
    for name, (dims, chunk, dtype, fill, values) in arrays().items():
        kind = np.dtypes.StringDType() if dtype == TEXT else np.dtype(dtype)
        values = np.array(values, dtype=kind)
        own = {"values": values.tolist()} if name in AXES else {}
        array = root.create_array(
            name,
            shape=values.shape,
            chunks=chunk,
            dtype=str if dtype == TEXT else dtype,
            fill_value=fill,
            dimension_names=dims,
            chunk_key_encoding={"name": "default", "separator": "."},
            compressors=[zarr.codecs.ZstdCodec(level=1, checksum=True)],
            attributes=own,
        )
        array[...] = values
    return path


def test_it_reads(tmp_path):
    path = written(tmp_path / "cube.zarr")
    cube = open_cube(path)
    assert cube.axes == {"rollout.dtype": ("float32", "bfloat16"), "batch.size": (1, 2)}
    assert cube.statuses() == {"c0": "pass", "c1": "fail", "c2": "not_run"}
    assert cube.values("c1") == {"max_abs_dlogp": 3.0}
    assert cube.ranks("c1") == {(0, 0): (2, {"max_abs_dlogp": 3.0})}
    tokens = cube.tokens("c1")
    assert tokens is not None
    assert (tokens.sequence_ids, tokens.token.tolist(), tokens.train_logp.tolist()) == (("prompt",), [12, 13], [-6, -4])
    select = [
        "case_id",
        "name",
        "reason",
        "within_baseline_row",
        "observed.batch.size",
        "requested.training.batch.size",
    ]
    assert query(path, "status == fail and observed.batch.size == 20", select) == [
        dict(zip(select, ["c1", "", "over the limit", False, 20, 2], strict=True))
    ]


def test_it_grows_in_its_own_chunks_and_is_rebuilt_in_them(tmp_path, build):
    """The chunks along ``axis`` and of ``record`` were not told of yet: what they were then stays."""
    first = build.case({"rollout.dtype": "float32", "batch.size": 1})
    plan = build.product({"rollout.dtype": ["float32", "bfloat16"], "batch.size": [1, 2]})
    path = tmp_path / "cube.zarr"
    written(path)
    root = zarr.open_group(path)
    ids = [case.id for case in plan.cases[:3]]
    assert ids[0] == first.id
    root["case"][:] = np.array(ids, dtype=np.dtypes.StringDType())
    before = build.hashes(path)

    commit(path, plan, [build.passed(plan.cases[3], 3)], build.attributes)
    cube = open_cube(path)
    assert list(cube.statuses().values()) == ["pass", "fail", "not_run", "pass"]
    assert cube.values(ids[1]) == {"max_abs_dlogp": 3.0} and cube.values(plan.cases[3].id)["max_abs_dlogp"] == 3 / 8
    grown = zarr.open_group(path, mode="r")
    assert grown["requested"].chunks == (2, 2, 2, 2) and grown["record"].chunks == (3,)
    assert before["token_id/c.0"] == build.hashes(path)["token_id/c.0"]  # the new case's tokens start a chunk

    outcomes = build.all_passed(plan)
    commit(path, plan, outcomes, build.attributes)
    rebuild(tmp_path / "again.zarr", plan, outcomes, build.attributes, like=path)
    assert build.hashes(tmp_path / "again.zarr") == build.hashes(path)
    rebuild(path, plan, outcomes, build.attributes, fresh=True)
    assert zarr.open_group(path, mode="r")["requested"].chunks == (2, 2, 2, 1)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("xcfg.cube/2", r"version 2 of its schema \(xcfg\.cube/2\), and this xcfg reads up to version 1"),
        ("xcfg.cube/0", r"schema 'xcfg\.cube/0' is not xcfg\.cube/1"),
        ("xcfg.report/2", r"schema 'xcfg\.report/2' is not"),
        (None, "schema None is not"),
    ],
)
def test_another_version_is_refused_by_name(tmp_path, schema, told):
    path = written(tmp_path / "cube.zarr", schema)
    with pytest.raises(ArtifactError, match=told):
        open_cube(path)
