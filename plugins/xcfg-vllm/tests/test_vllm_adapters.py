"""LoRA adapters: which are the checkpoint's, and what is said of one that a worker does not apply."""

from __future__ import annotations

import json

import pytest

from xcfg.errors import InvalidInput, UnsupportedError
from xcfg.model.capability import Unobservable
from xcfg.model.case import SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.scorer import Role
from xcfg.plugin import ScorerSpec
from xcfg_vllm.adapters import read_adapter
from xcfg_vllm.admission import Admitted, admit
from xcfg_vllm.limits import Limits
from xcfg_vllm.live import Live
from xcfg_vllm.plugin import xcfg_process_environment
from xcfg_vllm.readback import READERS
from xcfg_vllm.scoring import EngineScores

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from safetensors.torch import load_file, save_file  # noqa: E402

from xcfg_vllm.testing.adapter import ADAPTED, make_adapter  # noqa: E402


@pytest.fixture
def folder(checkpoint, tmp_path):
    return make_adapter(checkpoint, tmp_path / "adapter")


def _change(folder, **config) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))


def test_an_adapter_of_the_checkpoint(checkpoint, folder) -> None:
    read = read_adapter(folder, checkpoint)
    assert read.room == 8
    assert len(read.layers) == 2 * len(ADAPTED)
    assert "model.layers.1.mlp.down_proj" in read.layers


def test_an_adapter_declared_for_other_weights(checkpoint, folder) -> None:
    (folder / "xcfg-base.json").write_text(json.dumps({"base": {"weights": "f" * 64}}))
    with pytest.raises(InvalidInput, match="declared to be of the base ffffffffffff, and this checkpoint is"):
        read_adapter(folder, checkpoint)


@pytest.mark.parametrize(
    ("name", "tensor", "told"),
    [
        ("model.layers.0.mlp.up_proj.lora_A", (4, 63), r"has shape \[4, 63\] where .*up_proj has \[128, 64\]"),
        ("model.layers.0.mlp.up_proj.lora_B", (64, 4), r"has shape \[64, 4\] where .*up_proj has \[128, 64\]"),
        ("model.layers.2.mlp.up_proj.lora_A", (4, 64), r"no layer model\.layers\.2\.mlp\.up_proj"),
        ("model.layers.0.mlp.up_proj.lora_magnitude_vector", (4,), "is no LoRA factor"),
    ],
)
def test_an_adapter_of_another_base(checkpoint, folder, name, tensor, told) -> None:
    file = folder / "adapter_model.safetensors"
    save_file({**load_file(file), f"base_model.model.{name}.weight": torch.zeros(tensor)}, file)
    with pytest.raises(InvalidInput, match=told):
        read_adapter(folder, checkpoint)


@pytest.mark.parametrize(
    ("config", "error", "told"),
    [
        ({"peft_type": "IA3"}, InvalidInput, "describes no LoRA adapter"),
        ({"r": 0}, InvalidInput, "rank is 0"),
        ({"use_dora": True}, UnsupportedError, "no DoRA"),
        ({"modules_to_save": ["lm_head"]}, UnsupportedError, "no whole modules"),
    ],
)
def test_what_is_no_adapter_or_not_vllms(checkpoint, folder, config, error, told) -> None:
    _change(folder, **config)
    with pytest.raises(error, match=told):
        read_adapter(folder, checkpoint)


def test_a_folder_without_one(checkpoint, tmp_path) -> None:
    with pytest.raises(InvalidInput, match="no adapter here"):
        read_adapter(tmp_path, checkpoint)


def _told(adapter, *, sent, workers):
    scored = EngineScores(
        logprobs=(), cached_tokens=(), response_lengths=(), meters=({"adapters": sent},), cache={}, path="prefill"
    )
    live = Live(
        engine=None,
        limits=Limits(vocabulary=1, length=1),
        admitted=Admitted(adapter=adapter),
        workers=[{"adapters": worker} for worker in workers],
        scored=scored,
    )
    return READERS["vllm.lora"](live)


def test_what_is_observed_of_an_adapter(checkpoint, folder) -> None:
    read = read_adapter(folder, checkpoint)
    whole = {"active": [1], "layers": list(read.layers)}
    assert _told(read, sent=["here"], workers=[whole, whole]) == "here"
    assert _told(None, sent=[""], workers=[None]) is None
    assert _told(read, sent=["", "here"], workers=[whole]) == "here+none"
    lame = {"active": [1], "layers": list(read.layers)[1:]}
    found = _told(read, sent=["here"], workers=[whole, lame])
    assert isinstance(found, Unobservable)
    assert found.reason == f"worker 1 does not apply the adapter to {read.layers[0]} (1 such layers)"
    assert "holds 0 adapters" in _told(read, sent=["here"], workers=[{"active": [], "layers": []}]).reason


def _side(folder):
    return SideConfig(
        role=Role.ROLLOUT, scorer="vllm", checkpoint=Checkpoint(path="m"), knobs={"vllm.lora": str(folder)}
    )


def test_a_changed_adapter_under_one_path_is_another_one(checkpoint, folder, monkeypatch) -> None:
    """What a resumed run holds against a sealed one is the declared environment: it changes with either file."""
    before = xcfg_process_environment(side=_side(folder))["XCFG_VLLM_LORA"]
    assert xcfg_process_environment(side=_side(folder))["XCFG_VLLM_LORA"] == before
    monkeypatch.setenv("XCFG_VLLM_LORA", before)
    spec = ScorerSpec(
        role=Role.ROLLOUT,
        checkpoint=checkpoint,
        trust_remote_code=False,
        rank=0,
        world_size=1,
        engine={"lora": str(folder)},
    )
    assert admit(spec).adapter.digest == before
    _change(folder, lora_alpha=3)
    after = xcfg_process_environment(side=_side(folder))["XCFG_VLLM_LORA"]
    assert after != before
    with pytest.raises(InvalidInput, match="changed since this run was planned"):
        admit(spec)


def test_a_missing_adapter_has_no_digest(tmp_path) -> None:
    assert xcfg_process_environment(side=_side(tmp_path))["XCFG_VLLM_LORA"] == ""
