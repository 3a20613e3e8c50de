"""Model directories whose files and config.json are not of one model are refused by name."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from xcfg.errors import InvalidInput
from xcfg_torch.loading import load_model

HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


@pytest.fixture
def changed(checkpoint, tmp_path):
    """A copy of the checkpoint, its configuration and tensors changed."""

    def make(config=(), *, drop=(), add=()):
        folder = shutil.copytree(checkpoint, tmp_path / "changed")
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **dict(config)}))
        tensors = load_file(folder / "model.safetensors")
        kept = {name: tensor for name, tensor in tensors.items() if name not in drop} | dict(add)
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
        return folder

    return make


def _load(folder):
    return load_model(folder, dtype=None, attention=None)


def test_the_unchanged_copy_loads(changed) -> None:
    assert _load(changed()).lm_head.weight.shape == (256, 64)


def test_a_missing_tensor(changed) -> None:
    with pytest.raises(InvalidInput, match=r"missing_keys model\.layers\.1\.mlp\.up_proj\.weight"):
        _load(changed(drop=["model.layers.1.mlp.up_proj.weight"]))


def test_an_extra_tensor(changed) -> None:
    with pytest.raises(InvalidInput, match=r"unexpected_keys model\.layers\.2\.mlp\.up_proj\.weight"):
        _load(changed(add={"model.layers.2.mlp.up_proj.weight": torch.zeros(128, 64)}))


def test_a_tensor_of_another_shape(changed) -> None:
    with pytest.raises(InvalidInput, match=r"mismatched_keys model\.norm\.weight \(32,\) instead of \(64,\)"):
        _load(changed(drop=["model.norm.weight"], add={"model.norm.weight": torch.ones(32)}))


def test_tied_in_name_only(changed) -> None:
    with pytest.raises(InvalidInput, match=f"tie_word_embeddings is true and the files hold {HEAD} unlike {EMBEDDING}"):
        _load(changed({"tie_word_embeddings": True}))


def test_untied_without_a_head(changed) -> None:
    with pytest.raises(InvalidInput, match=f"tie_word_embeddings is false and no file holds {HEAD}"):
        _load(changed(drop=[HEAD]))


def test_tied_files_may_hold_the_embedding_twice_or_once(changed, checkpoint) -> None:
    same = load_file(checkpoint / "model.safetensors")[EMBEDDING].clone()
    folder = changed({"tie_word_embeddings": True}, add={HEAD: same})
    assert _load(folder).lm_head.weight is _load(folder).lm_head.weight or torch.equal(
        _load(folder).lm_head.weight, same
    )
    tensors = load_file(folder / "model.safetensors")
    del tensors[HEAD]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert torch.equal(_load(folder).lm_head.weight, same)


def test_weights_of_another_architecture(changed) -> None:
    with pytest.raises(InvalidInput, match=r"unexpected_keys model\.layers\.0\.self_attn\.k_norm\.weight") as error:
        _load(changed({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    assert "another architecture" in error.value.faults[0].hint


def test_an_architecture_that_its_model_type_does_not_make(changed) -> None:
    with pytest.raises(InvalidInput, match="LlamaForCausalLM, and its model_type makes a Qwen3ForCausalLM"):
        _load(changed({"architectures": ["LlamaForCausalLM"]}))


@pytest.mark.parametrize("kind", ["t5", "no-such-architecture"])
def test_no_causal_language_model(changed, kind) -> None:
    with pytest.raises(InvalidInput, match="cannot load this model"):
        _load(changed({"model_type": kind, "architectures": None}))
