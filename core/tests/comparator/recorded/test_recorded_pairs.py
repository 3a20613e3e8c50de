"""The files of paired tokens: a row is read without the rest of its file."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from xcfg.comparator.recorded.pairs import PairsWriter


@pytest.mark.parametrize("number", [0, 40, 79])
def test_a_row_takes_the_memory_of_a_row(tmp_path, number):
    """80 rows of 2000 tokens: 28 bytes a token are 56 kB a row, where the file of token ids alone has 1.3 MB."""
    with PairsWriter(tmp_path, wide=(True, True)) as writer:
        for row in range(80):
            writer.sequence(str(row).encode())
            column = np.arange(2000) + row
            columns = {"rollout": -column, "train": -column - 1, "position": column - row, "token": column + 7}
            writer.row((row, row + 1), columns, judged=True)
        pairs = writer.finish()
    tracemalloc.start()
    found = pairs.row(number)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000
    assert (found.sequence, found.rollout_rank, found.train_rank) == (str(number), number, number + 1)
    assert (found.rollout[0], found.train[0], found.position[-1]) == (-number, -number - 1, 1999)
    assert found.token.tolist() == list(range(number + 7, number + 2007))


@pytest.mark.parametrize("wide", [(False, False), (True, False), (False, True)])
def test_columns_are_no_wider_than_what_was_recorded(tmp_path, wide):
    """Token ids beyond 2**53, which no float64 tells apart."""
    column = np.arange(3.0)
    columns = {"rollout": -column, "train": -column, "position": np.arange(3), "token": 2**53 + np.arange(3)}
    with PairsWriter(tmp_path, wide=wide) as writer:
        writer.sequence(b"a")
        writer.row((0, 0), columns, judged=True)
        pairs = writer.finish()
    found = pairs.row(0)
    widths = {name: (tmp_path / f"{name}.bin").stat().st_size // 3 for name in columns}
    assert widths == {"rollout": 8 if wide[0] else 4, "train": 8 if wide[1] else 4, "position": 4, "token": 8}
    assert found.token.tolist() == [2**53, 2**53 + 1, 2**53 + 2]
    assert found.position.dtype.kind == "i"
