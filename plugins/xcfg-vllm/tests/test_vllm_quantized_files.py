"""Quantised checkpoints: their files by hand and by the compressed-tensors library, and how they are declared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from xcfg.errors import InvalidInput
from xcfg.plugin import digest_checkpoint
from xcfg_vllm.declared_layers import declared_forms
from xcfg_vllm.tensor_headers import read_headers

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from xcfg_vllm.testing.emulated_linear import emulated, quantised_rows, saturated_product  # noqa: E402
from xcfg_vllm.testing.packing import AWQ_ORDER, packed_columns, unpacked_columns  # noqa: E402
from xcfg_vllm.testing.quantized import make_quantized  # noqa: E402
from xcfg_vllm.testing.schemes import SCHEMES  # noqa: E402

FORMS = {"w8a8-int8": "w8a8-int8", "w8a8-fp8": "w8a8-fp8", "w4a16": "w4a16", "gptq": "w4a16", "awq": "w4a16"}


@pytest.fixture(scope="module")
def made(checkpoint, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("quantized")
    return {scheme: make_quantized(checkpoint, folder / scheme, scheme) for scheme in SCHEMES}


def test_the_same_base_gives_the_same_bytes(checkpoint, made, tmp_path) -> None:
    for scheme, folder in made.items():
        again = make_quantized(checkpoint, tmp_path / scheme, scheme)
        for file in folder.iterdir():
            assert (again / file.name).read_bytes() == file.read_bytes()


def test_the_base_is_declared_and_nothing_is_equal_to_it(checkpoint, made) -> None:
    base = digest_checkpoint(checkpoint).weights
    seen = {base}
    for scheme, folder in made.items():
        declared = json.loads((folder / "xcfg-base.json").read_text())
        assert declared == {"schema": "xcfg.base/1", "base": {"weights": base}, "quantization": scheme}
        seen.add(digest_checkpoint(folder).weights)
    assert len(seen) == 1 + len(SCHEMES)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_linear_layer_is_declared_and_the_head_is_not(made, scheme) -> None:
    forms = declared_forms(made[scheme])
    quantised = {layer for layer, form in forms.items() if form == FORMS[scheme]}
    assert quantised == {layer for layer in forms if layer.endswith("_proj")}
    assert len(quantised) == 2 * 7
    assert forms["lm_head"] == "none"


def test_what_is_quantised_in_words_only_is_an_error(checkpoint, tmp_path) -> None:
    assert declared_forms(checkpoint) == {}
    config = json.loads((checkpoint / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "gptq"}}))
    (tmp_path / "model.safetensors").write_bytes((checkpoint / "model.safetensors").read_bytes())
    with pytest.raises(InvalidInput, match="says the weights are quantised by gptq, and no tensor is"):
        declared_forms(tmp_path)


def test_no_quantised_checkpoint_is_quantised_again(made, tmp_path) -> None:
    with pytest.raises(InvalidInput, match="quantised already"):
        make_quantized(made["awq"], tmp_path / "again", "gptq")
    with pytest.raises(InvalidInput, match="no scheme 'int3'"):
        make_quantized(made["awq"], tmp_path / "again", "int3")


def test_packing_by_hand() -> None:
    codes = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 15]])
    assert packed_columns(codes).tolist() == [[0xF7654321 - (1 << 32)]]
    assert packed_columns(codes, AWQ_ORDER).tolist() == [[0xF6427531 - (1 << 32)]]
    for order in (tuple(range(8)), AWQ_ORDER):
        many = torch.randint(0, 16, (3, 24), generator=torch.Generator().manual_seed(1))
        assert unpacked_columns(packed_columns(many, order), order).tolist() == many.tolist()


def test_the_library_reads_what_is_written(made) -> None:
    quantization = pytest.importorskip("compressed_tensors.quantization", reason="compressed-tensors is not installed")
    from compressed_tensors.compressors.pack_quantized import unpack_from_int32
    from safetensors.torch import load_file

    for scheme in ("w8a8-int8", "w8a8-fp8", "w4a16"):
        config = json.loads((made[scheme] / "config.json").read_text())["quantization_config"]
        read = quantization.QuantizationConfig.model_validate(config)
        (group,) = read.config_groups.values()
        assert (group.weights.num_bits, group.input_activations is None) == (
            4 if scheme == "w4a16" else 8,
            scheme == "w4a16",
        )
    layer = "model.layers.0.mlp.down_proj"
    held = load_file(made["w4a16"] / "model.safetensors")
    shape = torch.Size(held[f"{layer}.weight_shape"].tolist())
    theirs = unpack_from_int32(held[f"{layer}.weight_packed"], 4, shape)
    ours = unpacked_columns(held[f"{layer}.weight_packed"]) - 8
    assert theirs.tolist() == ours.tolist()


@pytest.mark.parametrize(("scheme", "steps"), [("w8a8-int8", 254), ("w4a16", 14), ("gptq", 14), ("awq", 15)])
def test_a_weight_is_within_half_a_step_of_its_base(checkpoint, made, scheme, steps) -> None:
    """By the definition of rounding to the nearest: half the range over the steps, and the scale's own error."""
    from safetensors.torch import load_file

    layer = "model.layers.1.self_attn.q_proj"
    base = load_file(checkpoint / "model.safetensors")[f"{layer}.weight"].float()
    held = load_file(made[scheme] / "model.safetensors")
    tensors = {name.rpartition(".")[2]: tensor for name, tensor in held.items() if name.startswith(f"{layer}.")}
    linear = emulated(tensors, method=SCHEMES[scheme].config["quant_method"], shards=1)
    weight = linear.codes * linear.scale if linear.activations else linear.codes
    assert weight.shape == base.shape
    widest = 2 * base.abs().max() if scheme != "awq" else base.max() - base.min()
    assert (weight - base).abs().max() <= 0.53 * widest / steps


def test_fp8_rows_and_weights_by_hand() -> None:
    rows, scale = quantised_rows(torch.tensor([[448.0, 1.06, -2.0]]), "fp8")
    assert scale.tolist() == [[1.0]]
    assert rows.tolist() == [[448.0, 1.0, -2.0]]
    rows, scale = quantised_rows(torch.tensor([[254.0, 3.0, -1.0]]), "int8")
    assert (rows.tolist(), scale.tolist()) == ([[127.0, 2.0, 0.0]], [[2.0]])


def test_saturated_sums_by_hand() -> None:
    """(127 + 128) * 127 * 2 = 64770 saturates at 32767; 128 * 254 = 32512 is taken off: 255 where 32258 is exact."""
    rows, codes = torch.full((1, 2), 127.0), torch.full((1, 2), 127.0)
    assert saturated_product(rows, codes).tolist() == [[32767.0 - 32512.0]]
    assert saturated_product(rows, torch.full((1, 2), 64.0)).tolist() == [[127.0 * 64 * 2]]


def test_rows_over_two_workers_are_quantised_by_each() -> None:
    """Rows [8, 1] as one: scale 8/127, codes [127, 16]. As two: each is its own largest, and exact."""
    weight = {"weight": torch.tensor([[1, 1]], dtype=torch.int8), "weight_scale": torch.ones(1, 1)}
    row = torch.tensor([[8.0, 1.0]])
    whole = emulated(weight, method="compressed-tensors", shards=1)(row)
    halves = emulated(weight, method="compressed-tensors", shards=2)(row)
    assert whole.item() == pytest.approx(143 * 8 / 127)
    assert halves.item() == pytest.approx(9.0)


def test_headers_are_what_safetensors_reads(made) -> None:
    from safetensors.torch import load_file

    held = load_file(made["gptq"] / "model.safetensors")
    headers = read_headers(made["gptq"])
    assert {name: tuple(tensor.shape) for name, tensor in held.items()} == {n: h.shape for n, h in headers.items()}
    name = "model.layers.0.mlp.up_proj.qzeros"
    assert headers[name].content() == held[name].numpy().tobytes()


def test_a_file_cut_short_is_told(made, tmp_path) -> None:
    whole = (made["awq"] / "model.safetensors").read_bytes()
    for length in (4, 100, len(whole) - 1):
        (tmp_path / "model.safetensors").write_bytes(whole[:length])
        with pytest.raises(InvalidInput, match="cut short"):
            read_headers(tmp_path)
