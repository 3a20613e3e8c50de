"""A model split by Hugging Face's plan scores what the whole one does, on ranks that show how it lies on them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from xcfg.errors import EnvironmentFault, UnsupportedError
from xcfg.model.capability import Unsupported
from xcfg.model.scorer import Role
from xcfg.plugin import ScorerSpec
from xcfg_torch.group import leave
from xcfg_torch.testing.cases import OWN_CHOICE, tp_play
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import play
from xcfg_torch.testing.ranks import joined, play_ranks
from xcfg_torch.testing.tiny_model import make_tiny_qwen3
from xcfg_torch.tp_limits import degree_fault
from xcfg_torch.tp_materialize import TensorParallelMaterializer
from xcfg_torch.tp_materializers import MATERIALIZERS
from xcfg_torch.tp_readback import READERS
from xcfg_torch.tp_scorer import TensorParallelScorer

FP32_AGAINST_FP64 = 2e-5  # nats; the bound that the whole model is held to
CUT = {"self_attn.q_proj": "S(0)", "self_attn.o_proj": "S(1)", "mlp.up_proj": "S(0)", "mlp.down_proj": "S(1)"}


def _checked(documents, checkpoint, batch):
    """The read-back of rank 0, after what holds for every launch was asserted."""
    expected = np.concatenate(oracle_logprobs(checkpoint, batch))
    np.testing.assert_allclose(joined(documents).logprobs, expected, rtol=0, atol=FP32_AGAINST_FP64)
    assert [len(document["samples"][0].sequence) for document in documents] == [7, *[0] * (len(documents) - 1)]
    for document in documents:
        assert document["states"][0] == document["states"][1]
        assert document["observed"] == documents[0]["observed"]
        placed = document["rank"]["facts"]["placements"]
        assert {name: placed[f"model.layers.*.{name}.weight"] for name in CUT} == CUT
        assert placed.get("lm_head.weight", placed.get("model.embed_tokens.weight")) == "S(0)"
        assert document["rank"]["parallel"] == {"tp": len(documents)}
    return documents[0]["observed"]


def test_two_ranks_by_the_models_own_plan(checkpoint, batch, tmp_path) -> None:
    what = tp_play(checkpoint, ranks=2)
    observed = _checked(play_ranks(what, batch, tmp_path / "tp", ranks=2), checkpoint, batch)
    seen = {"training.output_dtype": "float32", "batch.micro_size": 3, "torch.head_dtype": "float32"}
    longest = max(len(prompt) + len(response) for prompt, response in zip(batch.prompts, batch.responses, strict=True))
    ranks = {"training.reduce_dtype": "float32", "execution.collective": "gloo", "torch.prefill_chunk": longest}
    assert observed == {**what.knobs, **OWN_CHOICE, **seen, **ranks}


def test_one_rank_needs_no_launcher(checkpoint, batch) -> None:
    result = play(tp_play(checkpoint, ranks=1), batch)
    assert result.observed["training.tensor_parallel_size"] == 1
    expected = np.concatenate(oracle_logprobs(checkpoint, batch))
    np.testing.assert_allclose(result.scored[0].samples.logprobs, expected, rtol=0, atol=FP32_AGAINST_FP64)


def test_ranks_that_cannot_split_the_heads(checkpoint) -> None:
    assert degree_fault(checkpoint, 2) == ""
    assert "num_attention_heads = 4" in degree_fault(checkpoint, 3)
    assert "num_key_value_heads = 2" in degree_fault(checkpoint, 4)
    found = TensorParallelMaterializer().probe("training.tensor_parallel_size", 4, {"checkpoint": str(checkpoint)})
    assert isinstance(found, Unsupported)
    assert "num_key_value_heads = 2" in found.reason


def test_sizes_of_the_text_model_count(tmp_path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 7, "text_config": {"num_attention_heads": 6}}))
    assert degree_fault(tmp_path, 2) == ""
    assert "num_attention_heads = 6" in degree_fault(tmp_path, 4)
    assert degree_fault(tmp_path / "nowhere", 4) == ""


def test_several_ranks_without_a_launcher(checkpoint) -> None:
    scorer = TensorParallelScorer()
    spec = ScorerSpec(role=Role.TRAINING, checkpoint=checkpoint, trust_remote_code=False, rank=0, world_size=2)
    with pytest.raises(EnvironmentFault, match="elastic launcher"):
        scorer.open(spec)
    scorer.close()
    leave(healthy=True)


def test_the_scorer_itself_refuses_before_it_loads(checkpoint) -> None:
    from xcfg_torch.tensor_parallel import open_split

    spec = ScorerSpec(role=Role.TRAINING, checkpoint=checkpoint, trust_remote_code=False, rank=0, world_size=4)
    with pytest.raises(UnsupportedError, match="num_key_value_heads"):
        open_split(spec, "cpu")


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("training.sharding", "full_shard"),
        ("training.context_parallel_size", 2),
        ("training.reduce_dtype", "float32"),
        ("training.compile", True),
        ("layout.vocab_padding", 128),
        ("execution.collective", "nccl"),
        ("torch.sdpa_kernel", "cudnn"),
        ("rollout.dtype", "float32"),
    ],
)
def test_what_it_cannot_be(knob, value) -> None:
    assert isinstance(TensorParallelMaterializer().probe(knob, value, {}), Unsupported)


def test_every_knob_can_be_read_back() -> None:
    assert {item.knob for item in MATERIALIZERS if not item.inapplicable} == set(READERS)


VARIANTS = {
    "tied": ({}, {"tied": True}, 2),
    "columns stay on their ranks": ({"logp.tp_layout": "vocab-parallel", "logp.deterministic": True}, {}, 2),
    "tied columns": ({"logp.tp_layout": "vocab-parallel", "logp.deterministic": True}, {"tied": True}, 2),
    "packed, float32 head": ({"layout.packing": True, "torch.head_dtype": "float32"}, {"tied": True}, 2),
    "decoded": ({"torch.forward": "cached_decode", "torch.norm_kernel": "fused"}, {}, 2),
    "chunks, math": (
        {"torch.forward": "chunked_prefill", "torch.prefill_chunk": 5, "torch.sdpa_kernel": "math"}, {}, 2
    ),
    "left, eager": ({"layout.padding_side": "left", "training.attention_backend": "eager"}, {}, 2),
    "four ranks": ({}, {"kv_heads": 4}, 4),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("variant", VARIANTS)
def test_each_setting_on_several_ranks(variant, batch, tmp_path) -> None:
    knobs, model, ranks = VARIANTS[variant]
    checkpoint = make_tiny_qwen3(tmp_path / "model", **model)
    backend = "deterministic" if "logp.tp_layout" in knobs else "production"
    what = tp_play(checkpoint, knobs, ranks=ranks, backend=backend)
    observed = _checked(play_ranks(what, batch, tmp_path / "tp", ranks=ranks), checkpoint, batch)
    assert {knob: observed[knob] for knob in knobs} == knobs
    assert observed["training.tensor_parallel_size"] == ranks


@pytest.mark.full
def test_ranks_give_the_bits_of_no_launch_before(checkpoint, batch, tmp_path) -> None:
    low = {"training.compute_dtype": "bfloat16"}
    runs = [play_ranks(tp_play(checkpoint, low, ranks=2), batch, tmp_path / str(run), ranks=2) for run in range(2)]
    assert joined(runs[0]).logprobs.tobytes() == joined(runs[1]).logprobs.tobytes()
    assert runs[0][0]["observed"]["training.reduce_dtype"] == "bfloat16"
