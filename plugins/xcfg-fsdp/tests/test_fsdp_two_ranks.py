"""Two ranks under torch's elastic launcher: bitwise the unsharded model, and read back from the live module."""

from __future__ import annotations

import pytest
import torch

from xcfg_fsdp.testing.cases import TRAINING, fsdp_play
from xcfg_torch.testing.cases import played as torch_played
from xcfg_torch.testing.ranks import joined, play_ranks

PARALLEL = {"full_shard": {"shard": 2}, "hybrid": {"replicate": 2, "shard": 1}, "unsharded": {"dp": 2}}
WHOLE = "unsharded"
OTHERS = (WHOLE, "hybrid")


@pytest.fixture(scope="module", params=["full_shard", *(pytest.param(name, marks=pytest.mark.full) for name in OTHERS)])
def launched(request, checkpoint, batch, tmp_path_factory):
    """(sharding, requested knobs, one document a rank) of two passes over seven sequences in batches of three."""
    sharding = request.param
    knobs = {"training.world_size": 2, "training.sharding": sharding}
    if sharding != WHOLE:
        knobs |= {"training.reduce_dtype": "float32", "fsdp.master_dtype": "float32"}
        knobs["fsdp.reshard_after_forward"] = sharding == "hybrid"
        knobs["fsdp.cpu_offload"] = sharding == "hybrid"
    folder = tmp_path_factory.mktemp("launch") / sharding
    documents = play_ranks(fsdp_play(checkpoint, knobs, times=2), batch, folder, ranks=2)
    return sharding, {**TRAINING, **knobs}, documents


def test_bits_are_those_of_one_process(launched, checkpoint, batch) -> None:
    _, _, documents = launched
    (single,) = torch_played(checkpoint, batch, {"training.compute_dtype": "bfloat16"}).scored
    for time in range(2):
        samples = joined(documents, time)
        assert samples.sequence.tolist() == list(range(len(batch.ids)))
        for name in ("input_ids", "position_ids", "action_mask", "logprobs"):
            assert getattr(samples, name).tobytes() == getattr(single.samples, name).tobytes(), name


def test_each_layer_gathered_from_the_ranks_is_that_of_the_unsharded_model(launched, checkpoint, batch) -> None:
    sharding, _, documents = launched
    held = {"training.compute_dtype": "bfloat16" if sharding == WHOLE else "float32"}
    whole = dict(torch_played(checkpoint, batch, held).identity.recorded["sections"])
    assert {"0", "ends"} <= set(whole)
    for document in documents:
        assert document["recorded"]["sections"] == whole


def test_batches_are_dealt_in_turn(launched) -> None:
    _, _, documents = launched
    # batches (0 1 2), (3 4 5), (6): the third goes to rank 0, and rank 1 repeats it for the collectives' sake
    assert [document["samples"][0].sequence.tolist() for document in documents] == [[0, 1, 2, 6], [3, 4, 5]]
    assert [document["rank"]["facts"]["parts"] for document in documents] == [["own", "own"], ["own", "replica"]]


def test_values_are_observed_on_every_rank(launched) -> None:
    sharding, requested, documents = launched
    chosen = {"training.output_dtype": "bfloat16", "batch.micro_size": 3, "execution.collective": "gloo"}
    if sharding == WHOLE:
        chosen["fsdp.master_dtype"] = "bfloat16"
    for document in documents:
        assert document["observed"] == {**requested, **chosen}
        assert document["rank"]["compute_dtype"] == "bfloat16"
        assert document["rank"]["parallel"] == PARALLEL[sharding]
        assert document["rank"]["facts"]["collective_backend"] == "gloo"


def test_state_is_unchanged_and_sharded_as_said(launched) -> None:
    sharding, _, documents = launched
    states = [document["states"] for document in documents]
    assert all(before == after for before, after in states)
    facts = [document["rank"]["facts"] for document in documents]
    total = facts[0]["elements"]
    if sharding == "full_shard":
        assert states[0][0] != states[1][0]
        assert sum(item["local_elements"] for item in facts) == total
        assert all(item["local_elements"] < total for item in facts)
    else:
        assert states[0][0] == states[1][0]
        assert [item["local_elements"] for item in facts] == [total, total]
    assert facts[0]["wrapped_modules"] == (0 if sharding == WHOLE else 3)
    if sharding == WHOLE:
        return
    (policy,) = facts[0]["policies"]
    assert policy == {
        "param_dtype": "bfloat16",
        "reduce_dtype": "float32",
        "output_dtype": None,
        "cast_forward_inputs": True,
        "groups": 3,
    }


def test_ranks_agree_on_the_checkpoint(launched) -> None:
    _, _, documents = launched
    assert len({document["checkpoint_digest"] for document in documents}) == 1


@pytest.mark.gpu2
@pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason=f"needs two CUDA devices and NCCL, torch sees {torch.cuda.device_count()}"
)
@pytest.mark.parametrize("sharding", list(PARALLEL))
def test_two_gpus_over_nccl(sharding, checkpoint, batch, tmp_path) -> None:
    knobs = {"training.world_size": 2, "training.sharding": sharding, "torch.device": "cuda"}
    documents = play_ranks(fsdp_play(checkpoint, knobs), batch, tmp_path / "launch", ranks=2)
    (single,) = torch_played(checkpoint, batch, {"training.compute_dtype": "bfloat16", "torch.device": "cuda"}).scored
    assert joined(documents).logprobs.tobytes() == single.samples.logprobs.tobytes()
    for document in documents:
        assert document["rank"]["facts"]["collective_backend"] == "nccl"
        assert document["observed"]["torch.device"] == "cuda"
        assert document["observed"]["training.sharding"] == sharding
        assert document["states"][0] == document["states"][1]
