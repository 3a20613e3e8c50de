"""The store of records: what was appended comes back in order, value for value, and no wider than it must be."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.comparator.recorded import store
from xcfg.comparator.recorded.store import Store


def kept(tmp_path, *records):
    """The arrays of records of side 0, in the order of the store, and the size of the file."""
    with Store(tmp_path) as held:
        for item in records:
            held.append(0, item)
        held.close_index()
        return [held.read(entry) for entry in held.entries()], (tmp_path / "records.bin").stat().st_size


@pytest.mark.parametrize(
    ("largest", "width"), [(0, 4), (2**31 - 1, 4), (2**31, 8), (2**31 + 1, 8), (2**32, 8), (2**40, 8)]
)
def test_token_ids_take_half_the_space_where_they_fit(tmp_path, record, largest, width):
    (arrays,), size = kept(tmp_path, record(logprobs=[-1.0, -2.0], ids=[largest, 0]))
    assert (arrays.response_ids.tolist(), arrays.response_ids.dtype) == ([largest, 0], np.dtype(f"i{width}"))
    assert size == 2 * width + 2 * 4


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_every_array_comes_back_where_others_are_absent(tmp_path, record, n, wide):
    logprobs = [-0.1 - place for place in range(n)]
    whole = {"mask": [place % 2 for place in range(n)], "prompt_ids": [2**40], "position_ids": list(range(n + 1))}
    for names in ((), ("mask",), ("prompt_ids",), ("position_ids",), ("mask", "position_ids"), tuple(whole)):
        fields = {name: whole[name] for name in names}
        folder = tmp_path / "-".join(["r", *names])
        folder.mkdir()
        (first, second), size = kept(folder, *(record(id, logprobs, wide=wide, **fields) for id in "ab"))
        for arrays in (first, second):
            assert arrays.response_ids.tolist() == list(range(10, 10 + n))
            assert arrays.logprobs.tolist() == np.array(logprobs, np.float64 if wide else np.float32).tolist()
            for name in whole:
                given = fields.get(name)
                held = getattr(arrays, name)
                assert (held is None) if given is None else held.tolist() == given
        one = n * (12 if wide else 8) + n * ("mask" in names) + 8 * ("prompt_ids" in names)
        assert size == 2 * (one + 8 * (n + 1) * ("position_ids" in names))


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_records_are_in_order_of_id_side_and_rank_in_however_many_batches(tmp_path, monkeypatch, record, batch):
    monkeypatch.setattr(store, "_BATCH", batch)
    with Store(tmp_path) as held:
        for id, side, rank in (("b", 1, 0), ("b", 0, 1), ("a", 1, None), ("b", 0, 0), ("a", 0, None)):
            held.append(side, record(id, rank=rank, place=f"{id}{side}{rank}"))
        held.close_index()
        assert [entry.place for entry in held.entries()] == ["a0None", "a1None", "b00", "b01", "b10"]
        assert [entry.rank for entry in held.entries()] == [-1, -1, 0, 1, 0]
        assert held.place_without_rank(1) == "a1None"
        assert [rank for rank, _, _ in held.declarations(0)] == [-1, 0, 1]


def test_a_side_is_wide_where_one_record_is(tmp_path, record):
    with Store(tmp_path) as held:
        held.append(0, record("a", ids=[2**40, 1, 2]))
        held.append(1, record("a"))
        held.append(1, record("b", wide=True))
        held.close_index()
        assert (held.wide(0), held.wide(1)) == (False, True)
