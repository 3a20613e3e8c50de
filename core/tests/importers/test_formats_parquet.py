"""Parquet: rows as pyarrow wrote them, as views and in little memory, and broken files."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from xcfg.errors import EnvironmentFault
from xcfg.importers.formats.parquet import read

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

LISTS = [[-0.5, None, float("-inf")], None, [], [-2.25]]


def _written(path: Path, columns: dict[str, object], **options: object) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.parametrize("item", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("listed", [pa.list_, pa.large_list])
def test_lists_of_floats_are_numpy_and_null_is_nan(tmp_path: Path, item: pa.DataType, listed) -> None:
    values = [None if row is None else [None if v is None else np.float16(v) for v in row] for row in LISTS]
    path = _written(tmp_path / "r.parquet", {"logprobs": pa.array(values, listed(item))})
    first, second, third, fourth = read(path)
    assert first.place == "r.parquet row 0"
    assert first.fields["logprobs"].dtype == item.to_pandas_dtype()
    np.testing.assert_array_equal(first.fields["logprobs"], [-0.5, np.nan, -np.inf])
    assert second.fields["logprobs"] is None
    assert third.fields["logprobs"].shape == (0,)
    assert fourth.fields["logprobs"].tolist() == [-2.25]


def test_integers_booleans_and_fixed_size_lists(tmp_path: Path) -> None:
    columns = {
        "response_ids": pa.array([[1, 2], [3, 4], None], pa.list_(pa.int32(), 2)),
        "mask": pa.array([[True, False], [], [True]], pa.list_(pa.bool_())),
        "with_null": pa.array([[1, None], [3], [4]], pa.list_(pa.int64())),
        "rank": pa.array([0, None, 1], pa.int8()),
    }
    rows = [row.fields for row in read(_written(tmp_path / "r.parquet", columns))]
    assert [None if r["response_ids"] is None else list(r["response_ids"]) for r in rows] == [[1, 2], [3, 4], None]
    assert rows[0]["mask"].dtype == np.bool_
    assert [row["mask"].tolist() for row in rows] == [[True, False], [], [True]]
    assert [list(row["with_null"]) for row in rows] == [[1, None], [3], [4]]
    assert [row["rank"] for row in rows] == [0, None, 1]


def test_texts_structs_and_maps(tmp_path: Path) -> None:
    columns = {
        "id": pa.array(["a", "b", "a"]).dictionary_encode(),
        "dtype": pa.array(["bfloat16", None, "float32"]),
        "rollout": pa.array(
            [{"lp": [-1.0], "n": 1}, None, {"lp": None, "n": 3}],
            pa.struct([("lp", pa.list_(pa.float32())), ("n", pa.int64())]),
        ),
        "top_logprobs": pa.array(
            [[[(5, -0.5)]], [], [[(7, -1.0), (8, None)]]], pa.list_(pa.map_(pa.int32(), pa.float64()))
        ),
    }
    rows = [row.fields for row in read(_written(tmp_path / "r.parquet", columns))]
    assert [row["id"] for row in rows] == ["a", "b", "a"]
    assert [row["dtype"] for row in rows] == ["bfloat16", None, "float32"]
    assert rows[0]["rollout"]["lp"].tolist() == [-1.0]
    assert rows[1]["rollout"] is None
    assert rows[2]["rollout"] == {"lp": None, "n": 3}
    assert rows[0]["top_logprobs"] == [{5: -0.5}]
    assert rows[2]["top_logprobs"] == [{7: -1.0, 8: None}]


@pytest.mark.parametrize("group", [7, 100, 10_000])
def test_every_row_of_many_batches_and_groups(tmp_path: Path, group: int) -> None:
    """A row of n tokens n, n + 1, ...: wherever a batch ends, each row has its own."""
    lengths = [index % 13 for index in range(1000)]
    lists = [[float(index + at) for at in range(length)] for index, length in enumerate(lengths)]
    path = _written(
        tmp_path / "r.parquet",
        {"id": [str(index) for index in range(1000)], "logprobs": pa.array(lists, pa.list_(pa.float32()))},
        row_group_size=group,
    )
    rows = list(read(path))
    assert [row.fields["id"] for row in rows] == [str(index) for index in range(1000)]
    assert [row.fields["logprobs"].tolist() for row in rows] == lists
    assert rows[-1].place == "r.parquet row 999"


def test_lists_are_views_and_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    count, length = 2000, 1000
    offsets = pa.array(np.arange(0, count * length + 1, length, dtype=np.int32))
    numbers = np.random.default_rng(0).standard_normal(count * length).astype(np.float32)
    lists = pa.ListArray.from_arrays(offsets, pa.array(numbers))
    path = _written(tmp_path / "r.parquet", {"logprobs": lists}, use_dictionary=False, compression="none")
    del lists, offsets
    before = pa.total_allocated_bytes()
    most = 0
    for index, row in enumerate(read(path)):
        found = row.fields["logprobs"]
        assert not found.flags.owndata
        most = max(most, pa.total_allocated_bytes() - before)
        if index % 500 == 499:
            np.testing.assert_array_equal(found, numbers[index * length : (index + 1) * length])
    assert path.stat().st_size > 8_000_000
    assert most < 4_000_000


def test_broken_files_are_named(tmp_path: Path, refused) -> None:
    whole = _written(tmp_path / "r.parquet", {"id": ["a"] * 1000, "x": pa.array(range(1000))}).read_bytes()
    for name, content in (
        ("cut.parquet", whole[:-20]),
        ("text.parquet", b'{"id": "a"}\n'),
        ("holed.parquet", whole[:4] + b"\xff" * 200 + whole[204:]),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        fault = refused(lambda path=path: read(path))
        assert fault.where == name
        assert fault.message.startswith("not a readable Parquet file: ")
        assert len(fault.message) > 40


def test_a_column_or_a_token_twice_is_refused(tmp_path: Path, refused) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(table, tmp_path / "r.parquet")
    assert refused(lambda: read(tmp_path / "r.parquet")).message == "column 'x' appears twice"
    twice = pa.array([[(5, -0.5), (5, -0.6)]], pa.map_(pa.int32(), pa.float64()))
    path = _written(tmp_path / "m.parquet", {"top": twice})
    assert "duplicate key was '5'" in refused(lambda: read(path)).message


def test_columns_that_nobody_asks_for_are_no_hindrance(tmp_path: Path) -> None:
    """Nanoseconds, which Python's datetime lacks, dates, decimals, empty lists and a column of nulls."""
    columns = {
        "at": pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns")),
        "day": pa.array([3, 4], pa.date32()),
        "nothing": pa.nulls(2),
        "empty": pa.array([[], []]),
        "bytes": pa.array([b"\xff", None]),
    }
    rows = [row.fields for row in read(_written(tmp_path / "r.parquet", columns))]
    assert rows[0] == {"at": 1_700_000_000_123_456_789, "day": 3, "nothing": None, "empty": [], "bytes": b"\xff"}


def test_text_that_is_not_utf8_is_refused(tmp_path: Path, refused) -> None:
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff"))
    path = _written(tmp_path / "r.parquet", {"id": broken})
    assert "utf-8" in refused(lambda: read(path)).message


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _written(tmp_path / "r.parquet", {"id": ["a"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(EnvironmentFault, match="reading Parquet needs pyarrow") as raised:
        list(read(path))
    assert raised.value.faults[0].hint == 'pip install "xcfg[parquet]"'
