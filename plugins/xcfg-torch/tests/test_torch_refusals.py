"""Inputs that cannot be scored are refused with a sentence that names them."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from xcfg.errors import EnvironmentFault, InvalidInput, PluginError
from xcfg.model.sample import TokenBatch
from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec
from xcfg_torch.device import device_of_rank
from xcfg_torch.loading import load_model, load_tokenizer
from xcfg_torch.scorer import TorchScorer
from xcfg_torch.testing.cases import played
from xcfg_torch.testing.tiny_model import MAX_POSITIONS


def _batch(prompt, response) -> TokenBatch:
    return TokenBatch(ids=["seq"], prompts=[prompt], responses=[response], action_masks=[[True] * len(response)])


@pytest.mark.parametrize(
    ("prompt", "response", "words"),
    [
        ([], [1], "prompt is empty"),
        ([1, 256], [1], "token 256 at position 1 is outside the model's vocabulary of 256"),
        ([1], [-1], "token -1 at position 1"),
        ([1], [1] * MAX_POSITIONS, f"{MAX_POSITIONS + 1} tokens exceed the model's max_position_embeddings"),
    ],
)
def test_token_batches(checkpoint, prompt, response, words) -> None:
    with pytest.raises(InvalidInput, match=words) as error:
        played(checkpoint, _batch(prompt, response))
    assert error.value.faults[0].where == "seq"


def test_the_longest_sequence_is_scored(checkpoint) -> None:
    samples = played(checkpoint, _batch([1], [2] * (MAX_POSITIONS - 1))).scored[0].samples
    assert samples.response_length.tolist() == [MAX_POSITIONS - 1]


def test_without_a_backend(checkpoint, batch) -> None:
    scorer = TorchScorer()
    scorer.open(ScorerSpec(role=Role.TRAINING, checkpoint=checkpoint, trust_remote_code=False, rank=0, world_size=1))
    with pytest.raises(PluginError, match="pip install xcfg-kernels"):
        scorer.score(batch, ScoreRequest())
    scorer.close()
    scorer.close()


def test_missing_folder(tmp_path) -> None:
    with pytest.raises(InvalidInput, match="no model directory"):
        load_model(tmp_path / "nowhere", dtype=None, attention=None)


def test_truncated_weights(checkpoint, tmp_path) -> None:
    broken = shutil.copytree(checkpoint, tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(InvalidInput, match="cannot load"):
        load_model(broken, dtype=None, attention=None)


def test_missing_weights_are_never_filled_with_random_numbers(checkpoint, tmp_path) -> None:
    broken = shutil.copytree(checkpoint, tmp_path / "broken")
    config = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(
        json.dumps({**config, "num_hidden_layers": 3, "layer_types": ["full_attention"] * 3})
    )
    with pytest.raises(InvalidInput, match=r"missing_keys model\.layers\.2"):
        load_model(broken, dtype=None, attention=None)


def test_pickled_weights_are_not_read(checkpoint, tmp_path) -> None:
    pickled = shutil.copytree(checkpoint, tmp_path / "pickled")
    model = load_model(checkpoint, dtype=None, attention=None)
    torch.save(model.state_dict(), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    with pytest.raises(InvalidInput, match="cannot load"):
        load_model(pickled, dtype=None, attention=None)


def test_unreadable_tokenizer(checkpoint, tmp_path) -> None:
    broken = shutil.copytree(checkpoint, tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{")
    with pytest.raises(InvalidInput, match="tokenizer"):
        load_tokenizer(broken)


@pytest.fixture
def remote(checkpoint, tmp_path):
    """The checkpoint under an architecture of its own, with the code beside it."""
    folder = shutil.copytree(checkpoint, tmp_path / "remote")
    (folder / "modeling_own.py").write_text(
        "from transformers import Qwen3Config, Qwen3ForCausalLM\n\n\n"
        "class OwnConfig(Qwen3Config):\n    model_type = 'xcfg_own'\n\n\n"
        "class OwnForCausalLM(Qwen3ForCausalLM):\n    config_class = OwnConfig\n"
    )
    config = json.loads((folder / "config.json").read_text())
    own = {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}
    (folder / "config.json").write_text(
        json.dumps({**config, "model_type": "xcfg_own", "architectures": ["OwnForCausalLM"], "auto_map": own})
    )
    return folder


def _open(folder, *, trust_remote_code) -> TorchScorer:
    scorer = TorchScorer()
    scorer.open(
        ScorerSpec(role=Role.TRAINING, checkpoint=folder, trust_remote_code=trust_remote_code, rank=0, world_size=1)
    )
    return scorer


def test_remote_code_is_off(remote) -> None:
    with pytest.raises(InvalidInput, match="trust_remote_code"):
        _open(remote, trust_remote_code=False)


def test_remote_code_is_recorded_when_on(remote) -> None:
    scorer = _open(remote, trust_remote_code=True)
    recorded = scorer.identity().recorded
    assert recorded["trust_remote_code"] is True
    assert recorded["model_class"].endswith("modeling_own.OwnForCausalLM")
    scorer.close()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_cuda_is_never_replaced_by_the_cpu() -> None:
    assert device_of_rank(None, 0) == torch.device("cpu")
    with pytest.raises(EnvironmentFault, match="torch sees 0"):
        device_of_rank("cuda", 0)
