"""Ranks under torch's elastic launcher, against the scorer ``torch`` and a float64 oracle."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from xcfg_deepspeed.operator import load_operator
from xcfg_deepspeed.testing.cases import ENGINES, TRAINING, deepspeed_play
from xcfg_deepspeed.testing.models import make_wide_qwen3
from xcfg_torch.testing.cases import played as torch_played
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.ranks import joined, play_ranks

ATOL = 2e-5
BFLOAT16 = 0.5  # nats; the tiny model's logits reach 10, where neighbours of bfloat16 lie 0.06 apart

full = pytest.mark.full


def _launch(checkpoint, batch, folder, ranks, knobs):
    """(requested knobs, one document a rank); nothing of DeepSpeed is left in shared memory."""
    asked = {"training.world_size": ranks, "training.compute_dtype": "float32", **knobs}
    segments = f"deepspeed_allreduce_buffer_{os.getuid()}_*"
    before = set(Path("/dev/shm").glob(segments))
    documents = play_ranks(deepspeed_play(checkpoint, asked, times=2), batch, folder / "launch", ranks=ranks)
    assert set(Path("/dev/shm").glob(segments)) <= before
    for document in documents:
        assert document["states"][0] == document["states"][1]
        assert document["rank"]["facts"]["steps"] == 0
    first, second = joined(documents, 0), joined(documents, 1)
    assert first.sequence.tolist() == list(range(len(batch.ids)))
    assert first.logprobs.tobytes() == second.logprobs.tobytes()
    return {**TRAINING, **asked}, documents


def _check_observed(requested, documents, **own):
    dtype = requested["training.compute_dtype"]
    chosen = {"training.output_dtype": dtype, "batch.micro_size": requested["batch.size"]}
    for document in documents:
        assert document["observed"] == {**requested, **chosen, **own}


def _zero(checkpoint, batch, folder, ranks, engine, dtype):
    knobs = {**ENGINES[engine], "training.compute_dtype": dtype}
    requested, documents = _launch(checkpoint, batch, folder, ranks, knobs)
    _check_observed(requested, documents, **{"execution.collective": "gloo"})
    (single,) = torch_played(checkpoint, batch, {"training.compute_dtype": dtype}).scored
    assert joined(documents).logprobs.tobytes() == single.samples.logprobs.tobytes()
    facts = [document["rank"]["facts"] for document in documents]
    if engine == "zero-3":
        assert all(item["local_elements"] < item["elements"] for item in facts)
        assert sum(item["local_elements"] for item in facts) >= facts[0]["elements"]
        assert len({document["states"][0] for document in documents}) == ranks
    else:
        assert [item["local_elements"] for item in facts] == [item["elements"] for item in facts]
    assert documents[0]["rank"]["parallel"] == {"shard" if engine == "zero-3" else "dp": ranks}
    return documents


def test_zero_3_on_two_ranks(checkpoint, batch, tmp_path) -> None:
    documents = _zero(checkpoint, batch, tmp_path, 2, "zero-3", "bfloat16")
    # batches (0 1 2), (3 4 5), (6): the third goes to rank 0, and rank 1 repeats it for the collectives' sake
    assert [document["samples"][0].sequence.tolist() for document in documents] == [[0, 1, 2, 6], [3, 4, 5]]


def _tensor_parallel(checkpoint, batch, folder, ranks, dtype, carried, **knobs):
    asked = {
        **ENGINES["inference"],
        "training.tensor_parallel_size": ranks,
        "training.compute_dtype": dtype,
        **knobs,
    }
    requested, documents = _launch(checkpoint, batch, folder, ranks, asked)
    _check_observed(requested, documents, **{"execution.collective": carried, "deepspeed.zero_stage": 0})
    expected = np.concatenate(oracle_logprobs(checkpoint, batch))
    atol = ATOL if dtype == "float32" else BFLOAT16
    np.testing.assert_allclose(joined(documents).logprobs, expected, rtol=0, atol=atol)
    for document in documents:
        assert document["rank"]["parallel"] == {"tp": ranks}
        assert document["rank"]["facts"]["local_elements"] < document["rank"]["facts"]["elements"]
        assert document["rank"]["facts"]["split_layers"] == ["LinearAllreduce", "LinearLayer", "LmHeadLinearAllreduce"]
    assert [len(document["samples"][0].sequence) for document in documents] == [len(batch.ids)] + [0] * (ranks - 1)
    return documents


def _shm_level() -> int:
    """What DeepSpeed's operator can do on this machine, without a launch."""
    operator = load_operator()
    return 0 if operator is None else int(operator.vector_kernel_level())


@full  # DeepSpeed compiles its operator first
def test_tensor_parallel_over_two_ranks(checkpoint, batch, tmp_path) -> None:
    carried = "shm" if _shm_level() >= 1 else "gloo"
    _tensor_parallel(checkpoint, batch, tmp_path, 2, "float32", carried)


@full
def test_sums_go_through_the_group_where_that_is_asked_for(checkpoint, batch, tmp_path) -> None:
    _tensor_parallel(checkpoint, batch, tmp_path, 2, "float32", "gloo", **{"execution.collective": "gloo"})


@full
def test_tensor_parallel_in_bfloat16(checkpoint, batch, tmp_path) -> None:
    carried = "shm" if _shm_level() >= 2 else "gloo"
    _tensor_parallel(checkpoint, batch, tmp_path, 2, "bfloat16", carried)


@full
def test_tensor_parallel_over_four_ranks(batch, tmp_path) -> None:
    carried = "shm" if _shm_level() >= 1 else "gloo"
    _tensor_parallel(make_wide_qwen3(tmp_path / "wide"), batch, tmp_path, 4, "float32", carried)


@full
def test_three_ranks_cannot_share_two_key_value_heads(checkpoint, batch, tmp_path) -> None:
    knobs = {**ENGINES["inference"], "training.tensor_parallel_size": 3}
    with pytest.raises(AssertionError, match="cannot be split evenly over 3 ranks"):
        _launch(checkpoint, batch, tmp_path, 3, knobs)


@full
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("engine", ["zero-0", "zero-1", "zero-2", "zero-3"])
def test_zero_on_two_ranks(checkpoint, batch, tmp_path, engine, dtype) -> None:
    _zero(checkpoint, batch, tmp_path, 2, engine, dtype)


@full
@pytest.mark.parametrize("engine", ["zero-1", "zero-3"])
def test_zero_on_four_ranks(checkpoint, batch, tmp_path, engine) -> None:
    _zero(checkpoint, batch, tmp_path, 4, engine, "float32")
