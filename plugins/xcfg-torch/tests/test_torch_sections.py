"""Digests by layer, against the files read and hashed by hand."""

from __future__ import annotations

import hashlib

import pytest
import torch
from safetensors.torch import load_file

from xcfg.errors import XcfgError
from xcfg_torch.head_dtype import compute_head_in
from xcfg_torch.loading import load_model
from xcfg_torch.sections import held_sections
from xcfg_torch.testing.cases import played
from xcfg_torch.testing.tiny_model import make_tiny_qwen3


def by_hand(folder) -> dict[str, str]:
    expected = {}
    for name, tensor in sorted(load_file(folder / "model.safetensors").items()):
        section = name.split(".")[2] if name.startswith("model.layers.") else "ends"
        state = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)};".encode())
        state.update(bytes(tensor.contiguous().view(torch.uint8).flatten().tolist()))
        expected.setdefault(section, hashlib.sha256()).update(f"{name} {state.hexdigest()};".encode())
    return {section: state.hexdigest() for section, state in expected.items()}


@pytest.mark.parametrize("compiled", [False, True])
def test_they_are_those_of_the_file(checkpoint, batch, compiled) -> None:
    """The file is float32: a model that holds it so has its very bytes, whatever is wrapped around its layers."""
    knobs = {"training.compute_dtype": "float32", "training.compile": compiled}
    found = played(checkpoint, batch, knobs).identity.recorded["sections"]
    assert dict(found) == by_hand(checkpoint)
    assert "ends" in found and "0" in found


def test_a_wider_dtype_has_the_digests_of_the_file(tmp_path, batch) -> None:
    folder = make_tiny_qwen3(tmp_path / "model", dtype="bfloat16")
    found = played(folder, batch, {"training.compute_dtype": "float32"}).identity.recorded["sections"]
    assert dict(found) == by_hand(folder)


def test_one_changed_value_is_named(checkpoint) -> None:
    model = load_model(checkpoint, dtype="float32", attention=None)
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[0, 0] += 1e-3
    with pytest.raises(XcfgError, match=r"another model\.layers\.0\.mlp\.up_proj\.weight"):
        held_sections(model.named_parameters(), checkpoint, torch.float32)


def test_a_head_computed_in_a_wider_dtype_than_the_model_was_loaded_in(checkpoint) -> None:
    """It holds the file's values rounded to the model's dtype, and not one of them may differ."""
    model = load_model(checkpoint, dtype="bfloat16", attention=None)
    compute_head_in(model, "float32")
    assert model.lm_head.weight.dtype == torch.float32
    held_sections(model.named_parameters(), checkpoint, model.config.dtype)
    with torch.no_grad():
        model.lm_head.weight[3, 5] *= 1 + 2**-20
    with pytest.raises(XcfgError, match=r"another lm_head\.weight"):
        held_sections(model.named_parameters(), checkpoint, model.config.dtype)
