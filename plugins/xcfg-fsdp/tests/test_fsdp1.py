"""FSDP1: bitwise the unsharded model, strategy and dtypes read from its live handles, substitutions seen."""

from __future__ import annotations

import pytest
import torch

from xcfg.model.capability import Unobservable, Unsupported
from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec
from xcfg_fsdp.flat.materialize import Fsdp1Materializer
from xcfg_fsdp.flat.scorer import Fsdp1Scorer
from xcfg_fsdp.testing.cases import FLAT, fsdp1_play
from xcfg_torch.testing.cases import played as torch_played
from xcfg_torch.testing.play import load, play
from xcfg_torch.testing.ranks import joined, play_ranks

ASKED = {
    "training.world_size": 2,
    "fsdp.strategy": "SHARD_GRAD_OP",
    "training.reduce_dtype": "float32",
    "training.output_dtype": "float32",
}


@pytest.fixture(scope="module")
def launched(checkpoint, batch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("flat") / "launch"
    return play_ranks(fsdp1_play(checkpoint, ASKED, times=2), batch, folder, ranks=2)


def test_bits_are_those_of_one_process(launched, checkpoint, batch) -> None:
    chosen = {"training.compute_dtype": "bfloat16", "training.output_dtype": "float32"}
    (single,) = torch_played(checkpoint, batch, chosen).scored
    for time in range(2):
        assert joined(launched, time).logprobs.tobytes() == single.samples.logprobs.tobytes()


def test_values_are_observed_on_every_rank(launched) -> None:
    chosen = {
        "execution.collective": "gloo",
        "batch.micro_size": 3,
        "fsdp.master_dtype": "float32",
        "fsdp.cpu_offload": False,
    }
    for document in launched:
        assert document["observed"] == {**FLAT, **ASKED, **chosen}
        assert document["rank"]["parallel"] == {"shard": 2}
        assert document["rank"]["compute_dtype"] == "bfloat16"
        assert document["states"][0] == document["states"][1]
        assert 2 * document["rank"]["facts"]["local_elements"] == document["rank"]["facts"]["elements"]
    assert launched[0]["states"] != launched[1]["states"]


def test_what_torch_puts_in_the_place_of_a_strategy_is_seen(checkpoint, batch) -> None:
    asked = {"fsdp.strategy": "FULL_SHARD", "training.sharding": "full_shard"}
    with pytest.warns(UserWarning, match="NO_SHARD"):
        result = play(fsdp1_play(checkpoint, asked), batch)
    assert result.observed["fsdp.strategy"] == "NO_SHARD"
    assert result.observed["training.sharding"] == "unsharded"
    assert result.scored[0].rank.parallel == {"dp": 1}
    assert result.identity.recorded["model_class"].endswith("Qwen3ForCausalLM")


def test_dtypes_of_buffers_and_shards_are_observed(checkpoint, batch) -> None:
    asked = {"training.sharding": "unsharded", "fsdp.buffer_dtype": "bfloat16", "fsdp.master_dtype": "bfloat16"}
    result = play(fsdp1_play(checkpoint, asked, times=2), batch)
    for knob, value in {**asked, "fsdp.strategy": "NO_SHARD", "training.reduce_dtype": "bfloat16"}.items():
        assert result.observed[knob] == value
    assert result.scored[0].rank.facts["buffer_dtypes"] == ("bfloat16",)
    assert result.states[0] == result.states[1]
    plain = torch_played(checkpoint, batch, {"training.compute_dtype": "bfloat16"}).scored[0]
    assert result.scored[0].samples.logprobs.tobytes() != plain.samples.logprobs.tobytes()  # rotary angles are rounded


def _scored(checkpoint, batch) -> Fsdp1Scorer:
    spec = ScorerSpec(
        role=Role.TRAINING,
        checkpoint=checkpoint,
        trust_remote_code=False,
        rank=0,
        world_size=1,
        engine={"device": "cpu", "sharding": "unsharded", "dtype": "bfloat16"},
    )
    scorer = Fsdp1Scorer()
    scorer.open(spec)
    with load("xcfg_kernels.production:Production")().bind(scorer.kernel_request("selected_logprob", {})) as bound:
        scorer.score(batch, ScoreRequest(operators={"selected_logprob": bound}))
    return scorer


def test_handles_that_disagree_are_seen(checkpoint, batch) -> None:
    from torch.distributed.fsdp._flat_param import HandleShardingStrategy

    scorer = _scored(checkpoint, batch)
    read = Fsdp1Materializer().read_back
    assert read("fsdp.strategy", scorer.live) == "NO_SHARD"
    handle = scorer.live.model.model.layers[0]._handle
    own = handle._sharding_strategy
    handle._sharding_strategy = HandleShardingStrategy.FULL_SHARD
    several = read("fsdp.strategy", scorer.live)
    handle._sharding_strategy = own
    handle._fwd_bwd_param_dtype = handle._reduce_dtype = torch.float16
    found = [read(knob, scorer.live) for knob in ("training.compute_dtype", "training.reduce_dtype")]
    handle._fwd_bwd_param_dtype = torch.bfloat16
    scorer.close()
    assert isinstance(several, Unobservable) and "FULL_SHARD" in several.reason
    assert all(isinstance(item, Unobservable) for item in found)


def test_a_changed_weight_is_seen(checkpoint, batch) -> None:
    scorer = _scored(checkpoint, batch)
    before = scorer.state_digest()
    assert scorer.state_digest() == before
    next(scorer.live.model.parameters()).data.mul_(1.5)
    changed = scorer.state_digest()
    scorer.close()
    assert changed != before


@pytest.mark.parametrize(
    ("knob", "value", "words"),
    [
        ("fsdp.cpu_offload", True, "pins the memory"),
        ("training.compile", True, "original parameters"),
        ("training.tensor_parallel_size", 2, "the scorer fsdp splits them"),
        ("training.context_parallel_size", 2, "the scorer fsdp shares them"),
        ("fsdp.activation_checkpointing", True, "no backward pass"),
        ("logp.tp_layout", "vocab-parallel", "whole rows"),
    ],
)
def test_what_it_cannot_do_is_refused(knob, value, words) -> None:
    found = Fsdp1Materializer().probe(knob, value, {"knobs": {"torch.device": "cpu"}})
    assert isinstance(found, Unsupported)
    assert words in found.reason
