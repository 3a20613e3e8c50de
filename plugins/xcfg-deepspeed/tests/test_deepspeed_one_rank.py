"""One rank without a launcher: the same engines, in this process."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

from xcfg.errors import EnvironmentFault, InvalidInput, UnsupportedError, XcfgError
from xcfg.model.capability import Unobservable, Unsupported
from xcfg.model.scorer import Role
from xcfg.plugin import ScoreRequest, ScorerSpec
from xcfg_deepspeed.materialize import DeepspeedMaterializer
from xcfg_deepspeed.scorer import DeepspeedScorer
from xcfg_deepspeed.tensor_parallel import check_heads, check_shared_memory
from xcfg_deepspeed.testing.cases import ENGINES, TRAINING, deepspeed_play
from xcfg_torch.testing.cases import played as torch_played
from xcfg_torch.testing.play import load, play

LINEAR = torch.nn.functional.linear
STAGES = {"zero-0": 0, "zero-1": 1, "zero-2": 2, "zero-3": 3, "inference": 0}


@pytest.fixture
def opened(checkpoint):
    """Opens scorers with engine settings and closes them at the end of the test, in the order of opening."""
    scorers = []

    def open_scorer(folder=checkpoint, world_size=1, **engine):
        scorer = DeepspeedScorer()
        scorers.append(scorer)
        scorer.open(
            ScorerSpec(
                role=Role.TRAINING,
                checkpoint=folder,
                trust_remote_code=False,
                rank=0,
                world_size=world_size,
                engine={"device": "cpu", "dtype": "float32", **engine},
            )
        )
        return scorer

    yield open_scorer
    for scorer in scorers:
        scorer.close()
    assert torch.nn.functional.linear is LINEAR
    assert not dist.is_initialized()


def _score(scorer, batch):
    with load("xcfg_kernels.production:Production")().bind(scorer.kernel_request("selected_logprob", {})) as bound:
        return scorer.score(batch, ScoreRequest(operators={"selected_logprob": bound}))


def _read(scorer, knob):
    return DeepspeedMaterializer().read_back(knob, scorer.live)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("engine", list(ENGINES))
def test_bits_and_values_of_every_engine(checkpoint, batch, engine, dtype) -> None:
    asked = {**ENGINES[engine], "training.compute_dtype": dtype}
    result = play(deepspeed_play(checkpoint, asked, times=2), batch)
    (plain,) = torch_played(checkpoint, batch, {"training.compute_dtype": dtype}).scored
    scores = [scored.samples.logprobs for scored in result.scored]
    assert scores[0].tobytes() == scores[1].tobytes()
    facts = result.scored[0].rank.facts
    if (engine, dtype) == ("inference", "bfloat16"):
        # init_inference casts buffers too, and with them the frequencies of the rotary embedding
        assert facts["buffer_dtypes"] == ("bfloat16",)
        assert 0 < np.abs(scores[0] - plain.samples.logprobs).max() < 0.5
    else:
        assert facts["buffer_dtypes"] == ("float32",)
        assert scores[0].tobytes() == plain.samples.logprobs.tobytes()
    assert result.states[0] == result.states[1]
    own = {
        "training.output_dtype": dtype,
        "batch.micro_size": 3,
        "execution.collective": "gloo",
        "deepspeed.zero_stage": STAGES[engine],
    }
    assert result.observed == {**TRAINING, **asked, **own}
    assert result.scored[0].rank.compute_dtype == dtype
    assert (facts["steps"], facts["optimizer_states"]) == (0, 0)
    assert result.identity.optimizer_steps == 0
    assert ("zero3" in facts["linear"]) == (engine == "zero-3")
    assert torch.nn.functional.linear is LINEAR
    assert not dist.is_initialized()
    assert not list(Path("/dev/shm").glob(f"deepspeed_allreduce_buffer_{os.getuid()}___*"))


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_step_is_out_of_reach(opened, batch, engine) -> None:
    scorer = opened(**_settings(engine))
    before = scorer.state_digest()
    live = scorer.live.engine
    if engine == "inference":
        assert not hasattr(live, "step") and not hasattr(live, "backward")
    else:
        for way in (live.step, lambda: live.backward(torch.zeros((), requires_grad=True))):
            with pytest.raises(XcfgError, match="only scores"):
                way()
    if engine in ("zero-1", "zero-2"):
        with pytest.raises(XcfgError, match="only scores"):
            live.optimizer.step()
        with pytest.raises(XcfgError, match="only scores"):
            live.optimizer.optimizer.step()
    _score(scorer, batch)
    assert scorer.state_digest() == before
    assert all(parameter.grad is None for parameter in scorer.live.model.parameters())


def _settings(engine):
    names = {"training.sharding": "sharding", "deepspeed.zero_stage": "zero_stage"}
    return {names.get(knob, "init_inference"): value for knob, value in ENGINES[engine].items()}


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_changed_weight_is_seen(opened, engine) -> None:
    scorer = opened(**_settings(engine))
    before = scorer.state_digest()
    parameter = next(scorer.live.model.parameters())
    getattr(parameter, "ds_tensor", parameter).data.mul_(1.5)
    assert scorer.state_digest() != before


def test_a_changed_master_weight_a_gradient_and_a_step_are_seen(opened) -> None:
    scorer = opened(sharding="unsharded", zero_stage=1)
    digests = [scorer.state_digest()]
    scorer.live.engine.optimizer.single_partition_of_fp32_groups[0].data.add_(1)
    digests.append(scorer.state_digest())
    parameter = next(scorer.live.model.parameters())
    parameter.grad = torch.zeros_like(parameter)
    digests.append(scorer.state_digest())
    scorer.live.engine.global_steps = 1
    digests.append(scorer.state_digest())
    assert len(set(digests)) == 4
    assert scorer.identity().optimizer_steps == 1


def test_bf16_where_fp32_was_asked_for_shows(opened, batch, monkeypatch) -> None:
    """``zero.Init(dtype=float32)`` makes bf16 parameters on a CPU, whatever it is told."""
    import deepspeed
    from transformers import AutoConfig, Qwen3ForCausalLM

    def made_under_zero_init(folder, **_):
        config = AutoConfig.from_pretrained(folder)
        config.pad_token_id = None  # initialising its row of the embedding would need the whole embedding
        with deepspeed.zero.Init(dtype=torch.float32):
            return Qwen3ForCausalLM(config).eval()

    monkeypatch.setattr("xcfg_deepspeed.scorer.load_model", made_under_zero_init)
    scorer = opened(sharding="full_shard", dtype="float32")
    scored = _score(scorer, batch)
    assert _read(scorer, "training.compute_dtype") == "bfloat16"
    assert scored.rank.compute_dtype == "bfloat16"
    assert scored.rank.facts["partition_dtypes"] == ("bfloat16",)


def test_a_stage_that_is_not_the_engines_own_shows(opened) -> None:
    scorer = opened(sharding="unsharded", zero_stage=1)
    assert _read(scorer, "deepspeed.zero_stage") == 1
    scorer.live.engine.optimizer.partition_gradients = True
    found = _read(scorer, "deepspeed.zero_stage")
    assert isinstance(found, Unobservable)
    assert "the engine says stage 1, its state is that of stage 2" in found.reason


def test_a_parameter_left_whole_under_zero_3_shows(opened) -> None:
    scorer = opened(sharding="full_shard")
    head = scorer.live.model.lm_head
    head.register_parameter("extra", torch.nn.Parameter(torch.ones(3)))
    assert isinstance(_read(scorer, "deepspeed.zero_stage"), Unobservable)
    del head._parameters["extra"]
    assert _read(scorer, "training.sharding") == "full_shard"


@pytest.mark.parametrize("settings", [{"sharding": "full_shard"}, {"zero_stage": 1}, {"init_inference": True}])
def test_fp16_is_refused_in_deepspeeds_words(opened, settings) -> None:
    with pytest.raises(UnsupportedError, match=r"DeepSpeed: .*not supported"):
        opened(dtype="float16", **settings)


def test_nccl_between_cpus(opened) -> None:
    found = DeepspeedMaterializer().probe("execution.collective", "nccl", {"knobs": {"torch.device": "cpu"}})
    assert isinstance(found, Unsupported)
    assert "CUDA" in found.reason
    with pytest.raises(EnvironmentFault, match="CUDA devices only"):
        opened(collective="nccl")


def test_contradictions_are_refused_without_a_plan_too(opened) -> None:
    with pytest.raises(UnsupportedError, match="full_shard is ZeRO-3"):
        opened(sharding="full_shard", zero_stage=1)


def test_several_ranks_need_the_launcher(opened) -> None:
    with pytest.raises(EnvironmentFault, match="elastic launcher"):
        opened(world_size=2, sharding="full_shard")


def test_close_after_a_failure(opened, tmp_path) -> None:
    with pytest.raises(InvalidInput, match="no model directory"):
        opened(folder=tmp_path / "nowhere", sharding="full_shard")
    assert dist.is_initialized()


@pytest.mark.parametrize(
    ("heads", "kv", "size", "words"),
    [(8, 8, 3, "8 attention heads"), (6, 2, 3, "2 key-value heads"), (6, 2, 4, "6 attention heads")],
)
def test_heads_that_do_not_divide(heads, kv, size, words) -> None:
    from types import SimpleNamespace

    from transformers import Qwen3Config

    model = SimpleNamespace(config=Qwen3Config(num_attention_heads=heads, num_key_value_heads=kv))
    with pytest.raises(UnsupportedError, match=f"{words} cannot be split evenly over {size} ranks"):
        check_heads(model, size)
    check_heads(model, 2)


def test_shared_memory_sums_need_vector_kernels() -> None:
    from types import SimpleNamespace

    check_shared_memory(SimpleNamespace(shm_vector_kernel_level=1), "float32")
    with pytest.raises(UnsupportedError, match="level 2 and this machine has level 1"):
        check_shared_memory(SimpleNamespace(shm_vector_kernel_level=1), "bfloat16")
    with pytest.raises(UnsupportedError, match="has level 0"):
        check_shared_memory(SimpleNamespace(), "float32")
