"""Checkpoints that are not their architecture's: told from headers, before an engine is built."""

from __future__ import annotations

import json
import shutil

import pytest

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.model.scorer import Role
from xcfg.plugin import ScorerSpec
from xcfg_vllm.model_tensors import check_tensors

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from safetensors.torch import load_file, save_file  # noqa: E402

from xcfg_vllm.testing.quantized import make_quantized  # noqa: E402
from xcfg_vllm.testing.schemes import SCHEMES  # noqa: E402

NORM = "model.layers.0.self_attn.q_norm.weight"


@pytest.fixture
def copied(checkpoint, tmp_path):
    """The checkpoint with its tensors and its configuration changed by functions of each."""

    def copy(tensors=None, source=checkpoint, **config):
        folder = shutil.copytree(source, tmp_path / "copy")
        held = load_file(folder / "model.safetensors")
        if tensors is not None:
            tensors(held)
            save_file(held, folder / "model.safetensors", metadata={"format": "pt"})
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | config))
        return folder

    return copy


def test_a_whole_checkpoint_passes(checkpoint) -> None:
    assert check_tensors(checkpoint) == ""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_quantised_ones_pass_whole_and_not_without_a_scale(checkpoint, tmp_path, copied, scheme) -> None:
    folder = make_quantized(checkpoint, tmp_path / scheme, scheme)
    assert check_tensors(folder) == ""
    scale = "scales" if scheme in ("gptq", "awq") else "weight_scale"
    name = f"model.layers.1.mlp.up_proj.{scale}"
    lame = copied(lambda held: held.pop(name), folder)
    with pytest.raises(InvalidInput, match=r"model\.layers\.1\.mlp\.up_proj"):
        check_tensors(lame)


def test_a_missing_tensor(copied) -> None:
    with pytest.raises(InvalidInput, match=r"q_norm\.weight is missing: Qwen3ForCausalLM has it"):
        check_tensors(copied(lambda held: held.pop(NORM)))


def test_an_extra_tensor(copied) -> None:
    extra = "model.layers.0.self_attn.sinks"
    with pytest.raises(InvalidInput, match="sinks is extra"):
        check_tensors(copied(lambda held: held.update({extra: torch.zeros(4)})))


def test_a_layer_too_many(copied) -> None:
    with pytest.raises(InvalidInput, match=r"model\.layers\.1\..* is extra"):
        check_tensors(copied(num_hidden_layers=1, layer_types=["full_attention"]))


def test_a_vocabulary_of_another_size(copied) -> None:
    with pytest.raises(
        InvalidInput, match=r"embed_tokens.weight has shape \[256, 64\] where the model has \[200, 64\]"
    ):
        check_tensors(copied(vocab_size=200))


def test_a_head_that_is_tied_in_words_only(copied) -> None:
    with pytest.raises(InvalidInput, match="holds different values for both"):
        check_tensors(copied(tie_word_embeddings=True))


def test_a_head_that_repeats_the_embedding_may_be_tied(copied) -> None:
    def repeat(held) -> None:
        held["lm_head.weight"] = held["model.embed_tokens.weight"].clone()

    assert check_tensors(copied(repeat, tie_word_embeddings=True)) == ""


def test_a_head_that_is_missing_where_nothing_is_tied(copied) -> None:
    with pytest.raises(InvalidInput, match=r"lm_head\.weight is missing"):
        check_tensors(copied(lambda held: held.pop("lm_head.weight")))


def test_an_architecture_that_is_not_the_model_types(copied) -> None:
    with pytest.raises(InvalidInput, match="names the architecture LlamaForCausalLM, and its model type qwen3"):
        check_tensors(copied(architectures=["LlamaForCausalLM"]))


def test_an_architecture_transformers_does_not_know_is_not_checked(copied) -> None:
    assert "transformers does not read" in check_tensors(copied(model_type="strange"))


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ({"tensor_parallel_size": 3}, "4 attention heads cannot be dealt evenly to 3"),
        ({"max_model_len": 257}, "has 256 positions, fewer than 257"),
        ({"quantization": "fp3"}, "unknown quantization"),
    ],
)
def test_what_cannot_run_is_unsupported_before_anything_is_built(checkpoint, engine, told) -> None:
    pytest.importorskip("vllm", reason="vllm is not installed")
    from xcfg_vllm.admission import admit

    spec = ScorerSpec(
        role=Role.ROLLOUT, checkpoint=checkpoint, trust_remote_code=False, rank=0, world_size=1, engine=engine
    )
    with pytest.raises(UnsupportedError, match=told):
        admit(spec)


def test_a_refusal_of_vllm_is_unsupported_in_its_own_words() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    from xcfg_vllm.faults import refusal_of

    class Settings(pydantic.BaseModel):
        blocks: int

        @pydantic.field_validator("blocks")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("blocks must be even")
            return value

    with pytest.raises(pydantic.ValidationError) as caught:
        Settings(blocks=3)
    assert str(refusal_of(caught.value)) == "vllm: vLLM refuses: blocks must be even"
    assert refusal_of(ValueError("other")) is None
