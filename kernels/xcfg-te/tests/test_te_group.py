"""Transformer Engine and ``xcfg_kernels`` on real ranks: each against float64, and each against the other."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from attrs import frozen

from xcfg.model.tolerance import DEFAULT_CONTRACT
from xcfg.plugin.registry import load_registry

SCRIPT = Path(__file__).with_name("te_ranks.py")
CONTRACT = load_registry(plugins=False).contract(DEFAULT_CONTRACT)
WORLDS = (1, 2, 4)
NAMES = ("theirs", "ours")


@frozen
class Found:
    """Of one world: every rank's arrays and what each rank was told."""

    arrays: list[dict[str, np.ndarray]]
    told: list[dict[str, str]]

    def gradient(self, case: int, name: str) -> np.ndarray:
        return np.concatenate([arrays[f"{case} {name} gradient"] for arrays in self.arrays], axis=1)


@pytest.fixture(scope="module")
def worlds(interpreting, tmp_path_factory):
    if find_spec("xcfg_kernels") is None:
        pytest.skip("xcfg-kernels is not installed")
    return {world: launched(tmp_path_factory.mktemp("te"), world, interpreting) for world in WORLDS}


@pytest.fixture(scope="module")
def ranks():
    pytest.importorskip("xcfg_te")
    return runpy.run_path(str(SCRIPT))


def launched(folder: Path, world: int, environment: dict[str, str]) -> Found:
    commands = [[sys.executable, str(SCRIPT), str(folder), str(rank), str(world)] for rank in range(world)]
    started = [subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True) for line in commands]
    try:
        errors = [process.communicate(timeout=550)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * world, errors
    arrays = [dict(np.load(folder / f"{rank}.npz")) for rank in range(world)]
    return Found(arrays, [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)])


def exact(ranks, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Logprobs (N,) and the gradient (N, V) in float64, of the logits as the dtype holds them."""
    logits, targets, weights = (values.double().numpy() for values in ranks["case"](*ranks["CASES"][number]))
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    softmax = shifted / shifted.sum(axis=1, keepdims=True)
    rows, targets = np.arange(len(logits)), targets.astype(int)
    logprobs = logits[rows, targets] - logits.max(axis=1) - np.log(shifted.sum(axis=1))
    gradient = -softmax * weights[:, None]
    gradient[rows, targets] += weights
    return logprobs, gradient


@pytest.mark.parametrize("world", WORLDS)
def test_each_against_float64_and_the_other(world, worlds, ranks) -> None:
    """All compute in float32 from the same logits, whatever their dtype, so the row of float32 holds for each."""
    limit, largest = CONTRACT.forward["logprob"]["float32"], dict.fromkeys((*NAMES, "between"), 0.0)
    for number in range(len(ranks["CASES"])):
        right, _ = exact(ranks, number)
        for arrays in worlds[world].arrays:
            first, second = (arrays[f"{number} {name}"].astype(np.float64) for name in NAMES)
            for name, gap in {"theirs": first - right, "ours": second - right, "between": first - second}.items():
                assert np.all(abs(gap) <= limit.atol + limit.rtol * abs(right)), (name, number, abs(gap).max())
                largest[name] = max(largest[name], float(abs(gap).max()))
    print(f"TP {world}, {number + 1} cases: max |d| against float64 te {largest['theirs']:.2g}, ours", end=" ")
    print(f"{largest['ours']:.2g}; te against ours {largest['between']:.2g}")


@pytest.mark.parametrize("world", WORLDS)
def test_gradients_of_each_against_float64_and_the_other(world, worlds, ranks) -> None:
    limits = CONTRACT.gradient["logprob"]
    for number, (*_, dtype, _) in enumerate(ranks["CASES"]):
        limit = limits[str(dtype).removeprefix("torch.")]
        _, right = exact(ranks, number)
        first, second = (worlds[world].gradient(number, name).astype(np.float64) for name in NAMES)
        for gap in (first - right, second - right, first - second):
            assert np.all(abs(gap) <= limit.atol + limit.rtol * abs(right))
        # Tighter than the contract: one rounding, or truncation, of what float32 gives.
        step = ranks["torch"].finfo(dtype).eps
        for found in (first, second):
            assert np.all(abs(found - right) <= limits["float32"].atol + step * abs(right))


@pytest.mark.parametrize("world", [2, 4])
def test_every_rank_has_the_same_logprobs(world, worlds, ranks) -> None:
    for number in range(len(ranks["CASES"])):
        for name in NAMES:
            for arrays in worlds[world].arrays[1:]:
                np.testing.assert_array_equal(arrays[f"{number} {name}"], worlds[world].arrays[0][f"{number} {name}"])


def test_ours_has_the_bits_of_one_rank_and_theirs_need_not(worlds, ranks) -> None:
    """One (max, sum) a rank is grouped by the ranks; blocks of the vocabulary are not."""
    other = dict.fromkeys(NAMES, 0)
    for number in range(len(ranks["CASES"])):
        for name in NAMES:
            one = worlds[1].arrays[0][f"{number} {name}"]
            other[name] += sum(int((worlds[world].arrays[0][f"{number} {name}"] != one).sum()) for world in (2, 4))
    print(f"logprobs with other bits at TP 2 and 4 than at TP 1: te {other['theirs']}, ours {other['ours']}")
    assert other["ours"] == 0


@pytest.mark.parametrize("world", [2, 4])
def test_ranks_that_do_not_fit_together_are_refused(world, worlds) -> None:
    for rank, told in enumerate(worlds[world].told):
        odd = 0 if rank else 1
        assert f"rank {odd} has {12 if odd == 0 else 10} columns" in told["uneven"], told
        assert "has no padding" in told["padded"], told
        assert f"rank {odd} has {2 + odd} rows" in told["rows"], told


def test_the_limit_finds_a_wrong_shard(worlds, ranks) -> None:
    """What the checks above would say of a rank that takes its neighbour's place in the vocabulary."""
    logits, targets, _ = ranks["case"](*ranks["CASES"][0])
    swapped = ranks["torch"].cat([logits[:, 512:], logits[:, :512]], dim=1).double().numpy()
    picked = swapped[np.arange(len(swapped)), targets.numpy()]
    wrong = picked - np.log(np.exp(swapped - swapped.max(axis=1, keepdims=True)).sum(axis=1)) - swapped.max(axis=1)
    gap = abs(worlds[2].arrays[0]["0 theirs"] - wrong)
    assert np.all(gap > CONTRACT.forward["logprob"]["float32"].atol)
