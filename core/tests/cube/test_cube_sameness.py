from __future__ import annotations

import shutil

import pytest

from xcfg.cube.sameness import check_measured, differences
from xcfg.cube.writer import commit, rebuild
from xcfg.errors import ArtifactError


@pytest.fixture
def pair(tmp_path, build, small):
    outcomes = build.all_passed(small)
    one, two = tmp_path / "one.zarr", tmp_path / "two.zarr"
    commit(one, small, outcomes[:5], build.attributes)
    commit(one, small, outcomes[5:], build.attributes)
    rebuild(two, small, [build.passed(case, n, attempt=3) for n, case in enumerate(small.cases)], build.attributes)
    return one, two


def test_attempt_numbers_and_killed_writes_are_no_difference(pair):
    one, two = pair
    (one / "metrics/c.0.0.0.0.abc.partial").write_bytes(b"0")
    assert (one / "measured/attempt/c.0.0").read_bytes() != (two / "measured/attempt/c.0.0").read_bytes()
    assert differences(one, two) == {}


def test_each_file_that_differs_is_named(pair):
    one, two = pair
    (one / "metrics/c.0.0.0.0").write_bytes(b"")
    (one / "status/c.0.0.0").unlink()
    shutil.copy(two / "dtype/c.0.0.0", one / "dtype/c.9.0.0")
    found = differences(one, two)
    assert found.keys() == {"metrics/c.0.0.0.0", "status/c.0.0.0", "dtype/c.9.0.0"}
    assert "missing" in found["status/c.0.0.0"] and "does not have it" in found["dtype/c.9.0.0"]


def test_a_damaged_chunk_of_the_measured_group_is_found(pair):
    one, _ = pair
    check_measured(one)
    chunk = one / "measured/cost/c.0.0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(ArtifactError, match="damaged"):
        check_measured(one)


def test_a_cube_rebuilt_elsewhere_keeps_the_layout_it_is_like(tmp_path, build):
    """Appended values stand behind the others; a plan that has them in between gives another order."""
    grown = build.product({"batch.size": [1, 4, 8]})
    path = tmp_path / "cube.zarr"
    commit(path, build.product({"batch.size": [1, 8]}), [], build.attributes)
    outcomes = build.all_passed(grown)
    commit(path, grown, outcomes, build.attributes)
    rebuild(tmp_path / "like.zarr", grown, outcomes, build.attributes, like=path)
    assert differences(path, tmp_path / "like.zarr") == {}
    rebuild(tmp_path / "fresh.zarr", grown, outcomes, build.attributes)
    assert differences(path, tmp_path / "fresh.zarr")
    rebuild(path, grown, outcomes, build.attributes, fresh=True)
    assert differences(path, tmp_path / "fresh.zarr") == {}
