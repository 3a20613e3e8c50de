"""Tensor parallelism: layers, embedding and head split over ranks, read back; what cannot be split is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import torch.distributed as dist
import transformers

from xcfg.errors import UnsupportedError
from xcfg.model.capability import Supported, Unobservable, Unsupported
from xcfg.model.scorer import Role
from xcfg.plugin import ScorerSpec
from xcfg_fsdp.materialize import FsdpMaterializer
from xcfg_fsdp.scorer import FsdpScorer
from xcfg_fsdp.tensor_limits import check_layers, check_sizes
from xcfg_fsdp.testing.cases import TRAINING, fsdp_play
from xcfg_fsdp.testing.models import make_even_qwen3
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.ranks import joined, play_ranks

TENSOR = "training.tensor_parallel_size"
KNOBS = {
    "training.world_size": 2,
    TENSOR: 2,
    "training.compute_dtype": "float32",
    "logp.tp_layout": "vocab-parallel",
    "logp.backend": "deterministic",
}


@pytest.fixture(scope="module")
def tied(tmp_path_factory):
    return make_even_qwen3(tmp_path_factory.mktemp("models") / "tied", tie_word_embeddings=True)


@pytest.fixture(scope="module")
def launched(tied, batch, tmp_path_factory):
    """One document a rank of a model whose head is its embedding, split over two ranks."""
    return play_ranks(fsdp_play(tied, KNOBS, times=2), batch, tmp_path_factory.mktemp("tensor") / "launch", ranks=2)


def test_float64_agrees(launched, tied, batch) -> None:
    expected = np.concatenate(oracle_logprobs(tied, batch))
    assert np.abs(joined(launched).logprobs - expected).max() < 2e-5
    assert joined(launched, 1).logprobs.tobytes() == joined(launched, 0).logprobs.tobytes()


def test_the_first_rank_hands_in_the_rows(launched) -> None:
    assert [document["samples"][0].sequence.tolist() for document in launched] == [list(range(7)), []]


def test_values_are_observed_on_every_rank(launched) -> None:
    chosen = {
        "training.output_dtype": "float32",
        "training.reduce_dtype": "float32",
        "execution.collective": "gloo",
        "batch.micro_size": 3,
        "fsdp.master_dtype": "float32",
        "fsdp.reshard_after_forward": "all-but-root",
        "fsdp.cpu_offload": False,
    }
    for rank, document in enumerate(launched):
        named = {"logp.backend": document["observed"]["logp.backend"]}  # by the host, on the operator that it binds
        assert document["observed"] == {**TRAINING, **KNOBS, **chosen, **named}
        assert document["rank"]["parallel"] == {"shard": 1, "tp": 2}
        assert document["rank"]["facts"]["head_columns"] == [128 * rank, 128 * rank + 128]
        assert document["states"][0] == document["states"][1]
    assert launched[0]["states"] != launched[1]["states"]


def test_each_rank_holds_its_part(launched) -> None:
    # by hand: hidden 64, 4 heads of 16, MLP 128, vocabulary 256, two layers; norms are whole on each rank
    split = 2 * (4 * 64 * 64 + 3 * 64 * 128) + 256 * 64
    whole = 2 * (2 * 64 + 2 * 16) + 64
    for document in launched:
        assert document["rank"]["facts"]["elements"] == split + whole
        assert document["rank"]["facts"]["local_elements"] == split // 2 + whole


@pytest.mark.parametrize(
    ("config", "ranks", "words"),
    [
        ({"num_attention_heads": 8, "num_key_value_heads": 8}, 3, "8 attention heads"),
        ({"num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 128}, 4, "2 key-value heads"),
        ({"vocab_size": 257}, 2, "257 rows of the vocabulary"),
        ({"text_config": {"intermediate_size": 130}}, 4, "130 columns of the MLP"),
    ],
)
def test_a_checkpoint_that_does_not_divide_is_refused_before_it_is_loaded(config, ranks, words, tmp_path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = FsdpMaterializer().probe(TENSOR, ranks, {"checkpoint": str(tmp_path)})
    assert isinstance(found, Unsupported)
    assert words in found.reason
    assert FsdpMaterializer().probe(TENSOR, 1, {"checkpoint": str(tmp_path)}) == Supported()
    assert FsdpMaterializer().probe(TENSOR, ranks, {"checkpoint": str(tmp_path / "nowhere")}) == Supported()


def _tiny(kind: str, **sizes):
    """A model of another architecture, on no device."""
    common = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    with torch.device("meta"):
        config = getattr(transformers, f"{kind}Config")(**{**common, **sizes})
        return getattr(transformers, f"{kind}ForCausalLM")(config)


@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Qwen3", "Mistral"])
def test_models_of_the_known_plan_pass(kind) -> None:
    model = _tiny(kind, intermediate_size=64, num_key_value_heads=4)
    check_layers(model)
    check_sizes(model, 4)
    with pytest.raises(UnsupportedError, match="4 attention heads, 4 key-value heads, 64 columns"):
        check_sizes(model, 3)


@pytest.mark.parametrize(
    ("kind", "sizes", "words"),
    [
        ("Phi3", {"intermediate_size": 64, "num_key_value_heads": 4, "pad_token_id": 0}, "has no self_attn.q_proj"),
        ("Olmo2", {"intermediate_size": 64, "num_key_value_heads": 4}, "self_attn.q_norm.weight"),
        ("Qwen3Moe", {"moe_intermediate_size": 16, "num_experts": 2, "num_experts_per_tok": 1}, "has no mlp.gate_proj"),
    ],
)
def test_models_of_another_plan_are_refused(kind, sizes, words) -> None:
    with pytest.raises(UnsupportedError, match=words):
        check_layers(_tiny(kind, **sizes))


def test_a_split_that_does_not_divide_the_ranks_is_refused(tied) -> None:
    scorer = FsdpScorer()
    with pytest.raises(UnsupportedError, match="3 does not divide the 1 ranks"):
        scorer.open(_spec(tied, tensor_parallel=3))
    scorer.close()
    assert not dist.is_initialized()


def test_a_layer_that_was_not_split_is_seen(checkpoint) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard

    scorer = FsdpScorer()
    spec = ScorerSpec(
        role=Role.TRAINING,
        checkpoint=checkpoint,
        trust_remote_code=False,
        rank=0,
        world_size=1,
        engine={"device": "cpu"},
    )
    scorer.open(spec)
    head = scorer.live.model.lm_head
    mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("tp",))
    for placement, words in ((Replicate(), "Replicate"), (Shard(0), None)):
        head.weight = torch.nn.Parameter(DTensor.from_local(_local(head.weight), mesh, [placement]))
        found = FsdpMaterializer().read_back(TENSOR, scorer.live)
        assert found == 1 if words is None else isinstance(found, Unobservable) and words in found.reason
    scorer.close()


def _spec(checkpoint, **engine) -> ScorerSpec:
    return ScorerSpec(
        role=Role.TRAINING,
        checkpoint=checkpoint,
        trust_remote_code=False,
        rank=0,
        world_size=1,
        engine={"device": "cpu", **engine},
    )


def _local(weight):
    return getattr(weight, "_local_tensor", weight).detach()
