"""The mapping of a checkpoint into GPTModel: by hand, refused where it does not fit, and a proof that can fail."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from xcfg.errors import InvalidInput, UnsupportedError, XcfgError
from xcfg_megatron.layouts import Columns, GateUp, QueryKeyValue, Vocabulary, Whole
from xcfg_megatron.testing.cases import megatron_play
from xcfg_megatron.testing.models import make_tiny
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import play


def _rows(*names: str) -> torch.Tensor:
    """One row a name, of its number: q0 is 0, k0 is 100, v0 is 200."""
    return torch.tensor(
        [[{"q": 0, "k": 100, "v": 200}[name[0]] + int(name[1:])] for name in names], dtype=torch.float32
    )


def test_query_key_value_by_hand() -> None:
    """Megatron: q1 q2 k1 v1 | q3 q4 k2 v2, rows of one dimension a head."""
    layout = QueryKeyValue(heads=4, groups=2, head_dim=1)
    parts = [_rows("q0", "q1", "q2", "q3"), _rows("k0", "k1"), _rows("v0", "v1")]
    assert torch.equal(layout.local(parts, 0, 1), _rows("q0", "q1", "k0", "v0", "q2", "q3", "k1", "v1"))
    assert torch.equal(layout.local(parts, 1, 2), _rows("q2", "q3", "k1", "v1"))
    assert torch.equal(layout.local(parts, 1, 4), _rows("k0", "v0"))


def test_gate_and_up_by_hand() -> None:
    gate, up = torch.arange(4.0)[:, None], torch.arange(4.0)[:, None] + 10
    assert GateUp().local([gate, up], 0, 2).flatten().tolist() == [0, 1, 10, 11]
    assert GateUp().local([gate, up], 1, 2).flatten().tolist() == [2, 3, 12, 13]


def test_vocabulary_by_hand() -> None:
    rows = torch.arange(1.0, 6.0)[:, None]
    assert [Vocabulary(5, 8).local([rows], rank, 2).flatten().tolist() for rank in (0, 1)] == [
        [1, 2, 3, 4],
        [5, 0, 0, 0],
    ]


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize(
    ("layout", "shapes"),
    [
        (QueryKeyValue(8, 4, 2), [(16, 3), (8, 3), (8, 3)]),
        (QueryKeyValue(8, 2, 2), [(16, 3), (4, 3), (4, 3)]),
        (QueryKeyValue(8, 4, 2), [(16,), (8,), (8,)]),
        (GateUp(), [(8, 3), (8, 3)]),
        (Columns(), [(3, 8)]),
        (Vocabulary(9, 12), [(9, 3)]),
        (Whole(), [(5,)]),
    ],
)
def test_parts_of_all_ranks_are_the_whole(layout, shapes, ranks) -> None:
    tensors = [torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))) for shape in shapes]
    found = layout.sources([layout.local(tensors, rank, ranks) for rank in range(ranks)])
    assert all(torch.equal(one, other) for one, other in zip(found, tensors, strict=True))


def test_what_no_rank_may_hold() -> None:
    with pytest.raises(ValueError, match="2 rows of zeros"):
        Vocabulary(4, 6).sources([torch.ones(3, 1), torch.ones(3, 1)])
    with pytest.raises(ValueError, match="ranks of a tensor-parallel group differ"):
        Whole().sources([torch.ones(3), torch.zeros(3)])


def _changed(checkpoint, folder, *, config=None, tensors=None):
    shutil.copytree(checkpoint, folder)
    if config:
        document = json.loads((folder / "config.json").read_text()) | config
        (folder / "config.json").write_text(json.dumps(document))
    if tensors:
        found = load_file(folder / "model.safetensors")
        tensors(found)
        save_file(found, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _split(found) -> None:
    found["model.layers.1.mlp.up_proj.weight"] = found["model.layers.1.mlp.up_proj.weight"][:-1].clone()


K3 = "model.layers.3.self_attn.k_proj.weight"


@pytest.mark.parametrize(
    ("config", "tensors", "words"),
    [
        (None, lambda found: found.pop(K3), f"the tensor {K3} is missing"),
        (
            None,
            lambda found: found.update({"model.layers.4.input_layernorm.weight": torch.ones(64)}),
            "the tensor model.layers.4.input_layernorm.weight belongs to no part of the model",
        ),
        (None, _split, r"model.layers.1.mlp.up_proj.weight has shape \(127, 64\), config.json calls for \(128, 64\)"),
        (
            {"num_hidden_layers": 3, "layer_types": ["full_attention"] * 3},
            None,
            "the tensor model.layers.3.input_layernorm.weight belongs to no part",
        ),
        ({"vocab_size": 300}, None, r"lm_head.weight has shape \(256, 64\), config.json calls for \(300, 64\)"),
        ({"tie_word_embeddings": True}, None, "lm_head.weight differs from model.embed_tokens.weight"),
        (None, lambda found: found.pop("lm_head.weight"), "the tensor lm_head.weight is missing .*tie_word_embeddings"),
    ],
)
def test_a_checkpoint_that_does_not_fit(config, tensors, words, checkpoint, batch, tmp_path) -> None:
    folder = _changed(checkpoint, tmp_path / "changed", config=config, tensors=tensors)
    with pytest.raises(InvalidInput, match=words):
        play(megatron_play(folder), batch)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"architectures": ["GemmaForCausalLM"]}, "GemmaForCausalLM has no mapping into GPTModel"),
        ({"hidden_act": "gelu"}, "the activation gelu is not built"),
        ({"rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 2.0}}, "type linear are not built"),
        ({"attention_bias": True}, "biases of attention_bias"),
        (
            {"layer_types": ["sliding_attention"] * 4, "sliding_window": 8, "use_sliding_window": True},
            "layers of sliding_attention are not built",
        ),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "a quantized checkpoint is not mapped"),
    ],
)
def test_a_model_that_has_no_mapping(config, words, checkpoint, batch, tmp_path) -> None:
    folder = _changed(checkpoint, tmp_path / "changed", config=config)
    with pytest.raises(UnsupportedError, match=words):
        play(megatron_play(folder), batch)


def test_a_directory_that_is_no_model(batch, tmp_path) -> None:
    with pytest.raises(InvalidInput, match="no model directory here"):
        play(megatron_play(tmp_path / "nowhere"), batch)


def test_a_tied_head_may_be_in_the_file_where_it_is_the_embedding(batch, tmp_path) -> None:
    tied = make_tiny(tmp_path / "tied", tie_word_embeddings=True, num_hidden_layers=1)
    twice = _changed(
        tied,
        tmp_path / "twice",
        tensors=lambda found: found.update({"lm_head.weight": found["model.embed_tokens.weight"].clone()}),
    )
    found = [play(megatron_play(folder), batch).scored[0].samples.logprobs for folder in (tied, twice)]
    assert np.array_equal(*found)
    np.testing.assert_allclose(found[0], np.concatenate(oracle_logprobs(tied, batch)), rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("architecture", "sizes"),
    [
        ("Qwen2", {}),
        ("Qwen2", {"tie_word_embeddings": True}),
        ("Llama", {"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}),
        ("Qwen3", {"head_dim": 8, "num_key_value_heads": 1}),
        ("Qwen3", {"num_key_value_heads": 8}),
    ],
)
def test_other_shapes_of_models(architecture, sizes, batch, tmp_path) -> None:
    folder = make_tiny(tmp_path / "model", architecture, num_hidden_layers=2, **sizes)
    found = play(megatron_play(folder), batch).scored[0].samples.logprobs
    np.testing.assert_allclose(found, _plain(folder, batch), rtol=0, atol=2e-5)


def _plain(folder, batch) -> np.ndarray:
    """Transformers' own forward in float64, eager, one sequence at a time."""
    import transformers

    options = {"dtype": torch.float64, "attn_implementation": "eager"}
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, **options).eval()
    found = []
    for prompt, response in zip(batch.prompts, batch.responses, strict=True):
        with torch.no_grad():
            logprobs = model(torch.tensor([[*prompt, *response]])).logits[0].log_softmax(-1)
        found += [float(logprobs[len(prompt) + at - 1, token]) for at, token in enumerate(response)]
    return np.array(found)


@pytest.mark.parametrize("stored", ["float32", "bfloat16"])
def test_sections_are_those_of_the_file(stored, batch, tmp_path) -> None:
    """Every tensor once, in its own section, hashed as it is in the file: fp32 keeps every bf16 value."""
    folder = make_tiny(tmp_path / "model", dtype=stored, num_hidden_layers=2)
    result = play(megatron_play(folder, {"layout.vocab_padding": 96}), batch)
    expected = {}
    for name, tensor in sorted(load_file(folder / "model.safetensors").items()):
        section = name.split(".")[2] if name.startswith("model.layers.") else "ends"
        state = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)};".encode())
        state.update(bytes(tensor.contiguous().view(torch.uint8).flatten().tolist()))
        expected.setdefault(section, hashlib.sha256()).update(f"{name} {state.hexdigest()};".encode())
    assert result.identity.recorded["sections"] == {section: state.hexdigest() for section, state in expected.items()}
    assert set(expected) == {"0", "1", "ends"}


def _heads_swapped(sources, rank, ranks):
    query, key, value = sources
    return QueryKeyValue_local(QueryKeyValue(8, 4, 16), (query.roll(16, dims=0), key, value), rank, ranks)


QueryKeyValue_local = QueryKeyValue.local


def test_swapped_heads_are_caught_by_the_digest(checkpoint, batch, monkeypatch) -> None:
    monkeypatch.setattr(QueryKeyValue, "local", lambda _, *arguments: _heads_swapped(*arguments))
    with pytest.raises(XcfgError, match=r"q_proj.weight, reassembled from .*linear_qkv.weight of all ranks, is not"):
        play(megatron_play(checkpoint), batch)


def test_a_missing_interleave_is_caught_by_the_digest(checkpoint, batch, monkeypatch) -> None:
    monkeypatch.setattr(QueryKeyValue, "local", lambda _, sources, rank, ranks: torch.cat(list(sources)))
    with pytest.raises(XcfgError, match="is not the checkpoint's"):
        play(megatron_play(checkpoint), batch)


def test_a_layout_wrong_in_both_directions_is_caught_by_the_scores(checkpoint, batch, monkeypatch) -> None:
    """Digests of tensors that were moved there and back agree whatever Megatron makes of them."""
    monkeypatch.setattr(QueryKeyValue, "local", lambda _, sources, rank, ranks: torch.cat(list(sources)))
    monkeypatch.setattr(QueryKeyValue, "sources", lambda _, shards: shards[0].split([128, 64, 64]))
    found = play(megatron_play(checkpoint), batch).scored[0].samples.logprobs
    assert np.abs(found - np.concatenate(oracle_logprobs(checkpoint, batch))).max() > 0.1


def test_a_changed_weight_is_caught_by_the_digest(checkpoint, batch, monkeypatch) -> None:
    monkeypatch.setattr(Columns, "local", lambda _, sources, rank, ranks: sources[0].nextafter(torch.tensor(9.0)))
    with pytest.raises(XcfgError, match=r"o_proj\.weight"):
        play(megatron_play(checkpoint), batch)
