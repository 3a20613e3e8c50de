"""One rank without a launcher: the conformance kit, and every value read back from the live model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.distributed as dist

from xcfg.errors import EnvironmentFault, InvalidInput, UnsupportedError
from xcfg.model.capability import Supported, Unobservable, Unsupported
from xcfg.model.sample import TokenBatch
from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec
from xcfg.testing.scorer_tests import ScorerTests
from xcfg_megatron.geometry import geometry, read_config, tensor_parallel_fault
from xcfg_megatron.importing import megatron
from xcfg_megatron.layers import placed_rotary
from xcfg_megatron.materialize import MegatronMaterializer
from xcfg_megatron.scorer import MegatronScorer
from xcfg_megatron.testing.cases import TRAINING, megatron_play
from xcfg_megatron.testing.models import make_tiny
from xcfg_torch.testing.cases import played as torch_played
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import load, play
from xcfg_torch.testing.tiny_model import make_tiny_qwen3

CHOSEN = {
    "training.output_dtype": "float32",
    "batch.micro_size": 3,
    "execution.collective": "gloo",
    "megatron.layer_spec": "local",
}
"""What the engine makes of a null, observed."""


class TestMegatronScorer(ScorerTests):
    atol = 2e-5
    vocabulary = 256
    settings = {"batch_size": 3}

    def make_scorer(self):
        return MegatronScorer()

    def spec(self, folder):
        return _spec(make_tiny_qwen3(folder / "tiny"))

    def oracle(self, batch, spec):
        return oracle_logprobs(spec.checkpoint, batch)

    def request(self, scorer):
        return ScoreRequest(settings=self.settings, operators=_operators(scorer))


class TestMegatronScorerPaddingLeft(TestMegatronScorer):
    settings = {"batch_size": 8, "micro_size": 2, "padding_side": "left"}


def _spec(checkpoint, world_size=1, **engine) -> ScorerSpec:
    return ScorerSpec(
        role=Role.TRAINING,
        checkpoint=checkpoint,
        trust_remote_code=False,
        rank=0,
        world_size=world_size,
        engine={"device": "cpu", "dtype": "float32", **engine},
    )


def _operators(scorer):
    with load("xcfg_kernels.production:Production")().bind(scorer.kernel_request("selected_logprob", {})) as bound:
        return {"selected_logprob": bound}


@pytest.fixture
def opened(checkpoint):
    """A function that opens a scorer, which is closed after the test."""
    scorer = MegatronScorer()

    def open_(**engine):
        scorer.open(_spec(checkpoint, **engine))
        return scorer

    yield open_
    scorer.close()


def test_every_value_is_observed(checkpoint, batch) -> None:
    assert play(megatron_play(checkpoint), batch).observed == {**TRAINING, **CHOSEN}
    asked = {
        "training.compute_dtype": "bfloat16",
        "training.output_dtype": "float32",
        "training.attention_backend": "sdpa",
        "batch.micro_size": 2,
        "layout.padding_side": "left",
        "layout.position_ids": "padded",
        "layout.vocab_padding": 96,
        "megatron.padded_vocab_in_normaliser": True,
        "megatron.layer_spec": "local",
        "execution.collective": "gloo",
        "logp.deterministic": True,
        "logp.backend": "megatron",
    }
    result = play(megatron_play(checkpoint, asked, backend="megatron"), batch)
    assert result.observed == {**TRAINING, **asked}
    assert result.states[0] == result.states[1]
    assert not dist.is_initialized()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_low_precision_is_seen_in_activations_and_scores(dtype, checkpoint, batch) -> None:
    result = play(megatron_play(checkpoint, {"training.compute_dtype": dtype}), batch)
    assert result.scored[0].rank.compute_dtype == dtype
    assert result.observed["training.output_dtype"] == dtype
    gap = np.abs(result.scored[0].samples.logprobs - np.concatenate(oracle_logprobs(checkpoint, batch))).max()
    assert 1e-4 < gap < 0.2


def _norm_of_transformers(self, hidden: torch.Tensor) -> torch.Tensor:
    wide = hidden.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
    return self.weight * wide.to(hidden.dtype)


def test_what_low_precision_changes_is_where_the_norms_round(checkpoint, batch, monkeypatch) -> None:
    """Megatron's norms multiply by their weight before they round, transformers' after: nothing else differs."""
    knobs = {"training.compute_dtype": "bfloat16"}
    expected = torch_played(checkpoint, batch, knobs).scored[0].samples.logprobs
    assert np.abs(play(megatron_play(checkpoint, knobs), batch).scored[0].samples.logprobs - expected).max() > 1e-3
    monkeypatch.setattr(torch.nn.RMSNorm, "forward", _norm_of_transformers)
    found = play(megatron_play(checkpoint, knobs), batch).scored[0].samples.logprobs
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("backend", ["megatron", "deterministic"])
def test_other_kernels_agree(backend, checkpoint, batch) -> None:
    found = play(megatron_play(checkpoint, backend=backend), batch)
    expected = np.concatenate(oracle_logprobs(checkpoint, batch))
    np.testing.assert_allclose(found.scored[0].samples.logprobs, expected, rtol=0, atol=2e-5)
    assert found.bound.backend == backend


@pytest.mark.parametrize("inside", [False, True])
def test_padding_in_or_out_of_the_normaliser(inside, checkpoint, batch) -> None:
    """By hand: rows of zeros have logit 0, so 32 of them add 32 to the sum of exponentials."""
    knobs = {"layout.vocab_padding": 96, "megatron.padded_vocab_in_normaliser": inside}
    result = play(megatron_play(checkpoint, knobs), batch)
    expected = np.concatenate(list(_padded_oracle(checkpoint, batch, 32 if inside else 0)))
    np.testing.assert_allclose(result.scored[0].samples.logprobs, expected, rtol=0, atol=2e-5)
    assert result.scored[0].semantics.vocab_size == (288 if inside else 256)
    assert result.observed["megatron.padded_vocab_in_normaliser"] is inside
    assert result.scored[0].rank.facts["head_rows"] == ((0, 288),)


def _padded_oracle(checkpoint, batch, extra):
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float64).eval()
    for prompt, response in zip(batch.prompts, batch.responses, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *response]])).logits[0].numpy()
        rows = logits[len(prompt) - 1 : -1]
        yield rows[np.arange(len(response)), list(response)] - np.log(np.exp(rows).sum(axis=1) + extra)


def test_positions_that_are_columns_are_megatrons_own(checkpoint) -> None:
    stock = megatron("models.common.embeddings.rotary_pos_embedding").RotaryEmbedding
    sizes = {"kv_channels": 16, "rotary_percent": 1.0, "rotary_base": 10000, "use_cpu_initialization": True}
    ours, theirs = placed_rotary()(**sizes), stock(**sizes)
    angles = theirs.get_freqs_non_repeated(7)
    assert torch.equal(ours(7), torch.cat((angles, angles), dim=-1)[:, None, None, :])
    ours.positions = torch.arange(7).expand(2, 7)
    assert torch.equal(ours(7)[:, 1], ours(7)[:, 0])
    ours.positions, counted = None, ours(7)[:, 0]
    assert torch.equal(ours(7)[:, 0], counted)


def test_what_stands_in_for_megatrons_modules_is_told(checkpoint, batch) -> None:
    facts = play(megatron_play(checkpoint), batch).scored[0].rank.facts
    assert dict(facts["substitutions"]) == {
        "megatron.core.models.common.embeddings.rotary_pos_embedding.RotaryEmbedding": (
            "xcfg_megatron.layers.PlacedRotaryEmbedding"
        ),
        "megatron.core.transformer.dot_product_attention.DotProductAttention": "xcfg_megatron.layers.SdpaAttention",
    }
    assert facts["layer_spec"] == "local" and facts["megatron_core"].startswith("0.16")
    assert facts["layers"] == (0, 1, 2, 3)


def test_an_optimizer_step_is_seen(opened, batch) -> None:
    scorer = opened()
    before = scorer.state_digest()
    scorer.score(batch, ScoreRequest(operators=_operators(scorer)))
    assert scorer.state_digest() == before
    assert not any(parameter.requires_grad for parameter in scorer.live.gpt.parameters())
    next(scorer.live.model.parameters()).data.mul_(1.5)
    assert scorer.state_digest() != before


def test_sizes_that_contradict_each_other_are_seen(opened, monkeypatch) -> None:
    live, state = opened().live, megatron("parallel_state")
    read = MegatronMaterializer().read_back
    for knob, name in (
        ("training.tensor_parallel_size", "_MPU_TENSOR_MODEL_PARALLEL_WORLD_SIZE"),
        ("megatron.pipeline_parallel_size", "_MPU_PIPELINE_MODEL_PARALLEL_WORLD_SIZE"),
    ):
        assert read(knob, live) == 1
        monkeypatch.setattr(state, name, 2)
        assert isinstance(read(knob, live), Unobservable)
    monkeypatch.undo()
    del live.gpt.decoder.layers[3]
    assert isinstance(read("megatron.pipeline_parallel_size", live), Unobservable)
    narrow = live.gpt.decoder.layers[0].self_attention.linear_qkv
    narrow.weight = torch.nn.Parameter(narrow.weight[:64])
    assert isinstance(read("training.tensor_parallel_size", live), Unobservable)
    assert isinstance(read("training.sharding", live), Unobservable)


def test_a_head_of_other_rows_is_seen(opened) -> None:
    live = opened(vocab_padding=96).live
    read = MegatronMaterializer().read_back
    assert read("layout.vocab_padding", live) == 96
    live.gpt.output_layer.weight = torch.nn.Parameter(live.gpt.output_layer.weight[:256])
    assert isinstance(read("layout.vocab_padding", live), Unobservable)


def test_a_token_of_the_padding_is_no_token(opened) -> None:
    scorer = opened(vocab_padding=96, padded_vocab=True)
    batch = TokenBatch(ids=["odd"], prompts=[[1]], responses=[[2, 256]], action_masks=[[True, True]])
    with pytest.raises(InvalidInput, match=r"odd: token 256 at position 2 is outside the model's vocabulary of 256"):
        scorer.score(batch, ScoreRequest(operators=_operators(scorer)))


def test_a_sequence_beyond_the_limit(opened) -> None:
    scorer = opened()
    batch = TokenBatch(ids=["long"], prompts=[[1] * 100], responses=[[2] * 29], action_masks=[[True] * 29])
    with pytest.raises(InvalidInput, match=r"long: 129 tokens exceed .* 128"):
        scorer.score(batch, ScoreRequest(operators=_operators(scorer)))


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"tensor_parallel": 3}, r"num_attention_heads \(8\) must be a multiple of tensor_model_parallel_size \(3\)"),
        ({"tensor_parallel": 16}, r"num_attention_heads \(8\) must be a multiple of tensor_model_parallel_size \(16\)"),
        ({"tensor_parallel": 8}, "the 4 key-value heads that 8 ranks share through CUDA alone"),
        ({"pipeline_parallel": 3}, "4 layers cannot be split into 3 equal stages"),
        ({"tensor_parallel": 2, "vocab_padding": 257}, "257 rows .* multiple of 2 .* 256"),
        ({"tensor_parallel": 2}, "1 ranks are no multiple of 2 tensor-parallel times 1"),
        ({"padded_vocab": True}, "no row of padding"),
        ({"layer_spec": "transformer_engine"}, "run on CUDA devices only"),
    ],
)
def test_ranks_that_cannot_share_the_model(engine, words, opened) -> None:
    with pytest.raises(UnsupportedError, match=words):
        opened(**engine)


@pytest.mark.parametrize(
    ("heads", "groups", "ranks", "device", "words"),
    [
        (6, 2, 4, "cuda", "num_attention_heads (6)"),
        (6, 2, 3, "cuda", "num_query_groups (2) must be a multiple or divisor of 3"),
        (8, 2, 4, "cpu", "through CUDA alone"),
        (8, 2, 4, "cuda", ""),
        (8, 4, 4, "cpu", ""),
        (6, 2, 2, "cpu", ""),
    ],
)
def test_heads_that_ranks_can_share(heads, groups, ranks, device, words, tmp_path) -> None:
    sizes = {"num_attention_heads": heads, "num_key_value_heads": groups, "num_hidden_layers": 1}
    shape = geometry(read_config(make_tiny(tmp_path / "model", **sizes)))
    found = tensor_parallel_fault(shape, ranks, device)
    assert words in found if words else found == ""


def test_the_reason_for_odd_heads_is_megatrons_own() -> None:
    config = megatron("transformer.transformer_config").TransformerConfig
    with pytest.raises(ValueError, match=r"num_attention_heads \(6\) must be a multiple of .* \(4\)\."):
        config(num_layers=4, hidden_size=192, num_attention_heads=6, num_query_groups=2, tensor_model_parallel_size=4)


def test_several_ranks_need_the_launcher(checkpoint) -> None:
    with pytest.raises(EnvironmentFault, match="elastic launcher"):
        MegatronScorer().open(_spec(checkpoint, world_size=2))


def test_nccl_between_cpus(opened) -> None:
    with pytest.raises(EnvironmentFault, match="nccl carries tensors of CUDA devices only"):
        opened(collective="nccl")
    probe = MegatronMaterializer().probe
    assert isinstance(probe("execution.collective", "nccl", {"knobs": {"torch.device": "cpu"}}), Unsupported)


@pytest.mark.parametrize(
    ("knob", "value", "knobs", "words"),
    [
        ("training.tensor_parallel_size", 4, {}, "num_attention_heads (6)"),
        ("megatron.pipeline_parallel_size", 2, {}, "3 layers"),
        ("layout.vocab_padding", 1, {"training.tensor_parallel_size": 2}, "255 rows"),
        ("training.context_parallel_size", 2, {}, "Transformer Engine's attention"),
        ("training.sharding", "full_shard", {}, "distributed optimizer"),
        ("training.attention_backend", "eager", {}, "CUDA"),
        ("training.compile", True, {}, "as they are"),
        ("training.reduce_dtype", "float32", {}, "dtype of the activations"),
        ("layout.packing", True, {}, "attention mask"),
        ("megatron.layer_spec", "transformer_engine", {"torch.device": "cpu"}, "CUDA devices only"),
    ],
)
def test_a_probe_tells_before_anything_is_built(knob, value, knobs, words, tmp_path) -> None:
    folder = make_tiny(
        tmp_path / "odd", num_attention_heads=6, num_key_value_heads=2, num_hidden_layers=3, vocab_size=255
    )
    probe = MegatronMaterializer().probe
    found = probe(knob, value, {"checkpoint": str(folder), "knobs": knobs})
    assert isinstance(found, Unsupported) and words in found.reason
    fine = {"training.tensor_parallel_size": 2, "megatron.pipeline_parallel_size": 3, "layout.vocab_padding": 2}
    if knob in fine:
        assert probe(knob, fine[knob], {"checkpoint": str(folder), "knobs": knobs}) == Supported()
        assert probe(knob, value, {"checkpoint": str(tmp_path / "nowhere"), "knobs": knobs}) == Supported()


def test_close_after_a_failure(tmp_path) -> None:
    scorer = MegatronScorer()
    with pytest.raises(InvalidInput, match="no model directory"):
        scorer.open(_spec(tmp_path / "nowhere"))
    scorer.close()
    scorer.close()
    assert not dist.is_initialized()
