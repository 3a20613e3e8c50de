"""Parts of one batch on the ranks of a process group: one result everywhere, and nobody waits for ever."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from xcfg.model.codec import unstructure
from xcfg_torch import compare_logprobs

SCRIPT = Path(__file__).with_name("comparing_ranks.py")
RANKS = runpy.run_path(str(SCRIPT))
EXACT = ("max_abs_dlogp", "p95_abs_dlogp", "p99_abs_dlogp", "ratio0_min", "ratio0_max", "clipfrac0", "frac_unequal")


def launched(folder, world, backend):
    """What each rank says of every case."""
    commands = [[sys.executable, str(SCRIPT), str(folder), str(rank), str(world), backend] for rank in range(world)]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    try:
        errors = [process.communicate(timeout=120)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * world, errors
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    return launched(tmp_path_factory.mktemp("gloo"), 3, "gloo")


def whole(change=None, **options):
    """The document of the batch in one process."""
    rollout, training, masks, ids = batch = RANKS["batch"](**options)
    if change is not None:
        RANKS[change](*batch)
    names = RANKS["NAMES"]
    found = compare_logprobs(rollout, training, mask=masks, token_ids=ids, sequence_ids=names, dtype="bf16")
    return unstructure(found)


def same_as_whole(found, expected):
    for name in ("status", "reason", "active_tokens", "threshold", "dtype", "clip_interval", "assumed", "contract"):
        assert found[name] == expected[name], name
    assert list(found["metrics"]) == list(expected["metrics"])
    for name, value in expected["metrics"].items():
        assert found["metrics"][name] == (value if name in EXACT else pytest.approx(value, rel=1e-11)), name
    placed = ("sequence", "position", "token", "rollout_logp", "train_logp")
    assert [found["worst"][name] for name in placed] == [expected["worst"][name] for name in placed]


@pytest.mark.parametrize("case", list(RANKS["DEALT"]))
@pytest.mark.parametrize("drift", [0.02, 0.4])
def test_every_rank_has_the_result_of_one_process(three, case, drift):
    first, *others = (found[case if drift == 0.02 else f"{case}, drifting"] for found in three)
    same_as_whole(first, whole(drift=drift))
    assert others == [first] * 2
    assert first["status"] == ("pass" if drift == 0.02 else "fail")


def test_percentiles_are_those_of_all_tokens(three):
    rollout, training, masks, _ = RANKS["batch"](0.4)
    left, right, on = (torch.cat(rows).double().numpy() for rows in (rollout, training, masks))
    size = np.abs(right - left)[on.astype(bool)]
    for found in three:
        metrics = found["uneven, drifting"]["metrics"]
        assert [metrics["p95_abs_dlogp"], metrics["p99_abs_dlogp"]] == np.percentile(size, [95, 99]).tolist()
        assert metrics["max_abs_dlogp"] == size.max()


@pytest.mark.parametrize("case", ["nothing active", "nothing at all"])
def test_nothing_active_anywhere(three, case):
    assert [found[case]["status"] for found in three] == ["zero_active_tokens"] * 3


def test_a_nan_on_one_rank_is_named_on_all(three):
    reason = "1 active logprobs are not finite, first training nan in sequence 'prompt 3' at position 1 on rank 1"
    assert [(found["nan"]["status"], found["nan"]["reason"]) for found in three] == [("non_finite", reason)] * 3


def test_a_tie_is_resolved_alike_on_all(three):
    first, *others = (found["tie"] for found in three)
    assert others == [first] * 2
    expected = whole("one_tie")
    assert first["metrics"]["max_abs_dlogp"] == expected["metrics"]["max_abs_dlogp"] == 8.0
    assert (first["worst"]["rollout_logp"], first["worst"]["train_logp"]) == (-1.0, -9.0)


def test_a_finding_on_one_rank_reaches_all(three):
    first, *others = (found["padding"] for found in three)
    assert others == [first] * 2
    (finding,) = [item for item in first["findings"] if item["rule"] == "exact_zero_logprobs"]
    assert finding["evidence"]["rank"] == 1
    assert finding["evidence"]["first"] == {"sequence": "prompt 3", "position": 10}


def test_one_memory_on_one_rank_is_refused_on_all(three):
    reason = "both sides are the same logprobs in memory, not two measurements, on rank 1"
    found = [(found["same memory"]["status"], found["same memory"]["reason"]) for found in three]
    assert found == [("invalid_artifact", reason)] * 3


@pytest.mark.parametrize(
    ("case", "rank", "said"),
    [
        ("wrong mask", 1, "mask: mask has 3 rows of 9 tokens in all"),
        ("no data", 0, "training: torch cannot give it to numpy"),
        ("no dtype", 1, "dtype: the name of a dtype is needed, not None"),
    ],
)
def test_a_wrong_argument_on_one_rank_raises_on_all(three, case, rank, said):
    own = three[rank][case]
    assert own["said"].startswith(said)
    for number, found in enumerate(three):
        assert found[case]["raised"] == "InvalidInput"
        assert found[case]["said"] == (own["said"] if number == rank else f"group: rank {rank}: {own['said']}")


def test_other_terms_on_one_rank_raise_on_all(three):
    said = "dtype: every rank must give the same dtype, got 'bfloat16' on rank 0, 'float32' on rank 1, 'bfloat16' on"
    for found in three:
        assert found["other dtype"]["raised"] == "InvalidInput"
        assert found["other dtype"]["said"].startswith(said)


def test_inference_mode_and_autocast(three):
    for found in three:
        same_as_whole(found["inference"], whole())


def test_a_subgroup_is_a_group_of_its_own(three):
    expected = whole()
    for rank in (0, 2):
        same_as_whole(three[rank]["subgroup"], expected)
    worst = RANKS["NAMES"].index(expected["worst"]["sequence"])
    assert three[0]["subgroup"]["worst"]["rollout_rank"] == RANKS["DEALT"]["uneven"][worst]
    assert three[1]["subgroup"]["raised"] == "InvalidInput"
    assert three[1]["subgroup"]["said"].startswith("group: this process is not in the process group")


def test_a_rank_that_never_calls_ends_the_others_at_the_group_s_timeout(three):
    assert three[0]["left alone"]["raised"] in ("RuntimeError", "DistBackendError")


@pytest.mark.gpu2
@pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason=f"needs two CUDA devices and NCCL, torch sees {torch.cuda.device_count()}"
)
def test_two_gpus_over_nccl(tmp_path):
    first, second = launched(tmp_path, 2, "nccl")
    assert first == second
    for case in RANKS["DEALT"]:
        same_as_whole(first[case], whole())
    assert (first["nan"]["status"], first["nothing active"]["status"]) == ("non_finite", "zero_active_tokens")
