"""Kernels of attention, norms and the output head: applied to this model alone, seen, and right."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from xcfg.errors import UnsupportedError
from xcfg_torch.attention_watch import watch_attention
from xcfg_torch.head_dtype import compute_head_in
from xcfg_torch.loading import load_model
from xcfg_torch.norms import compute_norms_by
from xcfg_torch.sdpa_kernels import kernel_of, only_kernel
from xcfg_torch.testing.cases import played
from xcfg_torch.testing.oracle import oracle_logprobs


@pytest.fixture(scope="module")
def oracle(checkpoint, batch):
    return np.concatenate(oracle_logprobs(checkpoint, batch))


@pytest.mark.parametrize("knob", ["torch.sdpa_kernel=math", "torch.sdpa_kernel=flash", "torch.norm_kernel=fused"])
def test_every_kernel_agrees_with_float64(checkpoint, batch, oracle, knob) -> None:
    name, _, value = knob.partition("=")
    result = played(checkpoint, batch, {name: value})
    np.testing.assert_allclose(result.scored[0].samples.logprobs, oracle, rtol=0, atol=2e-5)
    assert result.observed[name] == value
    assert result.states[0] == result.states[1]


@pytest.fixture(scope="module")
def weighted(checkpoint, tmp_path_factory):
    """The checkpoint with norms whose weights are not 1."""
    folder = shutil.copytree(checkpoint, tmp_path_factory.mktemp("weighted") / "tiny")
    tensors, seeded = load_file(folder / "model.safetensors"), torch.Generator().manual_seed(5)
    for name, tensor in tensors.items():
        if "norm" in name:
            tensors[name] = 1 + 0.2 * torch.randn(tensor.shape, generator=seeded)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_norms_spelt_out_are_the_models_own_bits(weighted, batch) -> None:
    low = {"training.compute_dtype": "bfloat16"}
    kernels = (None, "unfused", "fused")
    own, spelt, one = (played(weighted, batch, {**low, "torch.norm_kernel": kernel}) for kernel in kernels)
    assert [result.observed["torch.norm_kernel"] for result in (own, spelt, one)] == ["unfused", "unfused", "fused"]
    bits = [result.scored[0].samples.logprobs.tobytes() for result in (own, spelt, one)]
    assert bits[0] == bits[1]
    assert bits[0] != bits[2]


def test_where_a_norm_rounds(weighted) -> None:
    model = load_model(weighted, dtype="bfloat16", attention=None)
    norm, hidden = model.model.norm, torch.randn(1, 64, generator=torch.Generator().manual_seed(1)).bfloat16()
    wide = hidden.double()
    wide = wide / (wide.pow(2).mean() + norm.variance_epsilon).sqrt()
    weight = norm.weight.detach().double()
    once, twice = (weight * wide).bfloat16(), (weight * wide.bfloat16().double()).bfloat16()
    assert not torch.equal(once, twice)
    for kernel, expected in (("fused", once), ("unfused", twice)):
        compute_norms_by(model, kernel)
        assert torch.equal(norm(hidden), expected)


def test_only_the_norms_of_this_model_are_replaced(checkpoint) -> None:
    one, other = (load_model(checkpoint, dtype=None, attention=None) for _ in range(2))
    compute_norms_by(one, "fused")
    for model, expected in ((one, {"fused"}), (other, {"unfused"})):
        norms: set[str] = set()
        with torch.no_grad(), watch_attention(set(), norms=norms):
            model(input_ids=torch.tensor([[1, 2]]))
        assert norms == expected


def test_norms_that_compute_something_else() -> None:
    tiny = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
    gemma = transformers.AutoModelForCausalLM.from_config(transformers.Gemma2Config(**tiny, **heads))
    with pytest.raises(UnsupportedError, match="Gemma2RMSNorm"):
        compute_norms_by(gemma, "fused")
    gpt = transformers.AutoModelForCausalLM.from_config(
        transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=1, n_head=2)
    )
    with pytest.raises(UnsupportedError, match="no RMS norm"):
        compute_norms_by(gpt, "unfused")


def test_a_float32_head_by_hand(checkpoint) -> None:
    model = load_model(checkpoint, dtype="bfloat16", attention=None)
    weight, hidden = model.lm_head.weight.detach().clone(), torch.randn(2, 64).bfloat16()
    compute_head_in(model, "float32")
    expected = hidden.double() @ weight.double().T
    logits = model.lm_head(hidden)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits.double(), expected, rtol=0, atol=1e-5)


def test_a_float32_head_takes_the_heads_rounding_away(checkpoint, batch) -> None:
    low, head = {"training.compute_dtype": "bfloat16"}, {"torch.head_dtype": "float32"}
    result = played(checkpoint, batch, {**low, **head})
    assert result.observed["torch.head_dtype"] == "float32"
    assert result.observed["training.output_dtype"] == "float32"
    assert result.observed["training.compute_dtype"] == "bfloat16"
    plain = played(checkpoint, batch, low)
    assert plain.observed["torch.head_dtype"] == plain.observed["training.output_dtype"] == "bfloat16"
    assert plain.scored[0].samples.logprobs.tobytes() != result.scored[0].samples.logprobs.tobytes()


def test_a_tied_embedding_keeps_its_dtype() -> None:
    config = transformers.Qwen3Config(
        vocab_size=40, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, tie_word_embeddings=True,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config).bfloat16()
    compute_head_in(model, "float32")
    assert model.model.embed_tokens.weight.dtype == torch.bfloat16
    assert model.lm_head.weight.dtype == torch.float32
    assert torch.equal(model.lm_head.weight, model.model.embed_tokens.weight.float())


def test_names_of_kernels() -> None:
    assert kernel_of({"aten::bmm", "aten::_safe_softmax"}) == "math"
    assert kernel_of({"aten::_scaled_dot_product_flash_attention_for_cpu", "aten::where.self"}) == "flash"
    assert kernel_of({"aten::_scaled_dot_product_efficient_attention"}) == "efficient"
    assert kernel_of({"aten::_scaled_dot_product_cudnn_attention"}) == "cudnn"
    assert kernel_of({"aten::_scaled_dot_product_new"}) == "aten::_scaled_dot_product_new"


def test_a_kernel_that_is_not_there_raises_and_is_never_replaced() -> None:
    query = torch.zeros(1, 1, 2, 8)
    with only_kernel("efficient"), pytest.raises(RuntimeError, match="backend"):
        torch.nn.functional.scaled_dot_product_attention(query, query, query)
