"""Real ranks on gloo have the bits of one rank without padding, and refuse what does not fit together."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_kernels import selected_logprob, selected_logprob_and_lse  # noqa: E402

SCRIPT = Path(__file__).with_name("logprob_ranks.py")
RANKS = runpy.run_path(str(SCRIPT))
CASES = RANKS["CASES"]


def launched(folder, world, plan):
    """The arrays and the refusals of each rank."""
    commands = [[sys.executable, str(SCRIPT), str(folder), str(rank), str(world), plan] for rank in range(world)]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    try:
        errors = [process.communicate(timeout=550)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * world, errors
    arrays = [dict(np.load(folder / f"{rank}.npz")) for rank in range(world)]
    return arrays, [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    """Two ranks and four."""
    return {world: launched(tmp_path_factory.mktemp("gloo"), world, "small") for world in (2, 4)}


def expected(vocab, rows, seed, reduction, implementation):
    """One rank, no padding."""
    logits, targets, weights = CASES["case"](seed, rows, vocab, vocab, CASES["DTYPES"][seed % 3])
    options = {"reduction": reduction, "implementation": implementation}
    run = lambda leaves: selected_logprob_and_lse(leaves[0], targets, **options)  # noqa: E731
    return [values.numpy() for values in CASES["outcome"](run, [logits], weights, vocab)]


def compared(arrays, plan) -> int:
    """Asserts that every rank has the bits of one; how many cases."""
    for number, (vocab, _, rows, seed, reduction, implementation) in enumerate(RANKS["PLANS"][plan]):
        logprob, lse, gradient = expected(vocab, rows, seed, reduction, implementation)
        for found in arrays:
            np.testing.assert_array_equal(found[f"{number} logprob"], logprob)
            np.testing.assert_array_equal(found[f"{number} lse"], lse)
        whole = np.concatenate([found[f"{number} gradient"] for found in arrays], axis=1)
        np.testing.assert_array_equal(whole[:, :vocab], gradient)
        assert not whole[:, vocab:].any()
    print(f"{number + 1} cases on {len(arrays)} ranks bitwise equal to one rank without padding")
    return number + 1


@pytest.mark.parametrize("world", [2, 4])
def test_ranks_have_the_bits_of_one(world, groups) -> None:
    assert compared(groups[world][0], "small") == 18


def test_a_group_of_one(tmp_path) -> None:
    assert compared(launched(tmp_path, 1, "small")[0], "small") == 18


@pytest.mark.parametrize("world", [2, 4])
def test_what_does_not_fit_is_refused_on_every_rank(world, groups) -> None:
    for rank, said in enumerate(groups[world][1]):
        assert (
            f"this is rank {rank} of {world} in the group, rank {(rank + 1) % world} of {world}" in said["another rank"]
        )
        for case in ("another vocabulary on rank 1", "another dtype on rank 1"):
            assert f"rank {0 if rank == 1 else 1} declares another sharding" in said[case], (case, said[case])
        assert "a group needs the bounds of its ranks" in said["no sharding"]


def test_context_parallel_ranks_take_no_part_in_the_merge(groups) -> None:
    logits, targets, _ = CASES["case"](11, 8, 1000, 1024)
    right = CASES["bits"](selected_logprob(logits[:, :1000], targets)).numpy()
    for rank, found in enumerate(groups[4][0]):
        np.testing.assert_array_equal(found["context parallel"], right[rank // 2 * 4 : rank // 2 * 4 + 4])


def test_the_large_vocabulary_on_two_ranks(tmp_path) -> None:
    assert compared(launched(tmp_path, 2, "large")[0], "large") == 1


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("world", [1, 2, 4])
def test_the_large_vocabulary_in_full_on_ranks(world, seed, tmp_path) -> None:
    plan = f"full {seed}"
    assert compared(launched(tmp_path, world, plan)[0], plan) == 7
